"""All attention of a trained model as arrays: of its pooling, its candidates and its layers."""
