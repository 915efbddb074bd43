"""Kernels of the resource scorers: amounts by row in, points 0..100 by row out."""
