"""Kernels of the GPU scorers: what is left of devices in, points out."""
