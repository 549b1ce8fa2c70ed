"""Measurements: each module has `run(seed)`, which gives what `results/<name>.json` records."""
