"""Records and replays what an API server answers; `python -m asched_lab.record.transcripts`."""
