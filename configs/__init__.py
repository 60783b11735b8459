"""Hydra configuration: one entry file per command, and groups that users override."""
