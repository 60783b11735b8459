"""The feature store: one HDF5 file per split, written once and read through a memory map."""
