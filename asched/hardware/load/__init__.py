"""Placement by measured load: what nodes use, not what their pods ask for."""
