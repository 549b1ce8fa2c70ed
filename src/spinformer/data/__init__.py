"""Corpora and images."""
