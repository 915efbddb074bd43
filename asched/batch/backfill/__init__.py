"""Backfill: starts that are promised to units that fit nowhere now."""
