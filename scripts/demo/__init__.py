"""make demo: a page on this machine to ask about images and to move K and λ."""
