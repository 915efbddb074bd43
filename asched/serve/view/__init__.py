"""What the live view shows of a running scheduler."""
