"""Laws of the whole public API on generated inputs; `cases` says how many, `test_registry` that none is forgotten."""
