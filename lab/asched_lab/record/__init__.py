"""Records what a running scheduler decides, seen from outside; `python -m asched_lab.record`."""
