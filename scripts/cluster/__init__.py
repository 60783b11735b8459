"""Several processes and Slurm: launch, submit, exit status, signals, output of child processes."""
