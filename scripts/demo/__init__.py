"""make demo: a page on this machine to ask about pictures and to move K and λ."""
