"""Benchmarks: each module has `run(seed)`, whose outcome `spinformer bench` writes to `research/results/NAME.json`."""
