"""Measurements beside a bare client, of decisions alone, and of single parts."""
