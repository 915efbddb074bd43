"""Scheduling of several pods as a unit, and over time; registers itself through `extensions.py`."""
