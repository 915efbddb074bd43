"""Explanations of decisions, and comparison with the decisions of another scheduler."""
