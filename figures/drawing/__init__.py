"""Drawing: arrays in, figures out; knows neither models nor datasets."""
