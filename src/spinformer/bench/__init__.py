"""Measurements that the documents quote."""
