"""Trained models answering a split: predictions, accuracy, λ selection, human attention."""
