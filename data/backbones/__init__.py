"""Backbones: what turns a picture into a grid of feature vectors."""

from data.backbones.catalogue import Backbone, open_backbone

__all__ = ["Backbone", "open_backbone"]
