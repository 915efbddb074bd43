"""Pod groups: gathered, tried together, bound or given back together."""
