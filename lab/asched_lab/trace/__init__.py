"""Recorded clusters: their pods offered one at a time to a policy, and what becomes of the GPUs."""
