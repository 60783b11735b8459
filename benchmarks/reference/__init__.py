"""Plain transcriptions of what was published: the baselines."""
