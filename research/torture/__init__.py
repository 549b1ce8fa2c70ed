"""What must hold of the library whatever is done to it: parts with `run(plan)`, run by `spinformer torture`."""
