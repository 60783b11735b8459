"""MCAN: the network that asks, and whose attention over the image is pluggable."""
