"""`shapes`, the dataset that ships with the code: coloured shapes in the official formats."""
