"""Scripts run as `python -m research.tools.NAME`: fill the documents, join results, make the samples in the clone."""
