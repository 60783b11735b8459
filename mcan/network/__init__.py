"""MCAN, the network: reads as plain torch; its attention over the image is a registered head."""
