"""From the questions of a split to batches of tensors."""
