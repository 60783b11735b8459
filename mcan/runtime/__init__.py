"""How code runs: device and dtype, processes, compilation, requests to stop."""
