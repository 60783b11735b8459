"""Words: the tokenizer, the vocabulary, the answer list and word vectors."""
