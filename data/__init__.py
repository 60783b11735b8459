"""VQA-v2 files, words, the official metric, the feature store and the embedded dataset."""
