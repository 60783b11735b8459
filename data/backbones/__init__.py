"""Backbones: what turns an image into a grid of feature vectors."""
