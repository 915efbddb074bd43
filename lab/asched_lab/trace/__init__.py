"""Recorded clusters: their pods offered one at a time to a policy, and the GPU use that results."""
