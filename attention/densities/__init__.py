"""Probability densities over the image: Gaussians, their mixtures, and the mass in each cell."""
