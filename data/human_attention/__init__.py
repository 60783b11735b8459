"""Human attention maps (VQA-HAT), and how attention compares with them."""
