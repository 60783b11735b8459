"""make doctor: what would stop or spoil a training run, found before it is started."""
