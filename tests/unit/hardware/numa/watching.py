"""A cache of a cluster, with a word for each thing that happens, and for what is believed."""

START_S, RESYNC_S = 1_800_000_000.0, 10.0
