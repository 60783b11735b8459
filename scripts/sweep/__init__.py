"""make sweep: runs over lists of settings, on this machine or on Slurm, and their report."""
