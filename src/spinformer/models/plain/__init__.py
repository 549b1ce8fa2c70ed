"""BERT classifiers in torch alone: read in a fraction of the time that importing transformers takes.

The answers are those of transformers. What is not understood to the last option is left to transformers.
"""
