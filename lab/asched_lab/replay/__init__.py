"""Repeat a recording, compare its decisions, make it anonymous."""
