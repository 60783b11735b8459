"""The `patch` backbone: fixed descriptors of colour, shape and texture."""
