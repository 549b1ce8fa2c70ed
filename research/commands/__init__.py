"""Commands of `spinformer bench` and `spinformer reproduce`: each module has `configure(parser)` and `run(args)`."""
