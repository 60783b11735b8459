"""One thin entry point per command: the only package that joins the others and touches Hydra."""
