"""Placement by measured load: actual use instead of requests."""
