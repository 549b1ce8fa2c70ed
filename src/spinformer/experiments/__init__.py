"""The papers' experiments, computed to JSON and drawn from it."""
