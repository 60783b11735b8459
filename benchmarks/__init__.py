"""make bench: baselines, timing and tables."""
