"""make cost: what a training takes, counted from the code, and estimated for some GPUs."""
