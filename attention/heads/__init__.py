"""Attention heads: the contract, the registry, and the three heads of the paper."""
