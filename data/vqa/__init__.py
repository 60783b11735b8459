"""The official VQA files: questions, annotations, results, the accuracy, the data folder."""
