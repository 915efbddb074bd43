"""Placement by what koordlet measures: Koordinator's NodeMetric, where it exists."""
