"""make doctor: what would stop a training, or spoil it, found before it is started."""
