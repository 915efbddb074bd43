"""What operators ask of a running scheduler: doctor, audit, recording, status controllers."""
