"""Backfill: promised start times for units that fit on no node now."""
