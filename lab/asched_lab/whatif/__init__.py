"""Hypothetical scheduling: a snapshot of a cluster, changes to it, and the real scheduler."""
