"""Placement by the measurements of koordlet (Koordinator's NodeMetric)."""
