"""Pods move to make room for a unit that waits; their new places are held first."""
