"""What `make bench` measures, one file per part."""
