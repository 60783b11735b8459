"""Densities over the image: mixtures of Gaussians and of paraboloids, and the mass in each cell."""
