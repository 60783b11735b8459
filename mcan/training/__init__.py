"""A training run: loop, step, trackers, checkpoints in a run folder."""
