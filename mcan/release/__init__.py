"""A model to hand on: a checkpoint without the state of its run, and a model card."""
