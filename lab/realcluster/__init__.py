"""A cluster of three nodes with kubelets on one Linux machine, and trials of asched in it."""
