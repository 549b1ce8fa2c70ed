"""Recipes that train models."""
