"""What the documents are made of: experiments, benchmarks, their results, and the tools that fill the documents.

This package is in the clone only, not in the wheel. `spinformer bench` and `spinformer reproduce` run its commands.
It may import anything of `spinformer`; nothing in `spinformer` imports it, except that the command line looks it up.
"""
