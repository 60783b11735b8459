"""Pictures of attention: arrays in, figures and HTML out. Knows neither models nor datasets."""
