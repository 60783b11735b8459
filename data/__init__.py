"""VQA-v2 files, vocabulary, answers, the official metric, the feature store and the embedded dataset."""
