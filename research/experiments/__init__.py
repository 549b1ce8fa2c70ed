"""Experiments: what is trained and measured for the documents. Commands run them, reports show their results."""
