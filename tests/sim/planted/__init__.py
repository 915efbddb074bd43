"""Mistakes planted in copies of the code, and how many lives it takes to find them."""
