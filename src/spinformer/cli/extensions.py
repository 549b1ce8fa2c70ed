"""Extensions: installed packages that add explanation methods, pooling heads or indices."""

import sys
from importlib.metadata import entry_points

GROUP = "spinformer.extensions"


def load_extensions() -> None:
    """Load every entry point of the group "spinformer.extensions", whose import registers what it brings.

    In the pyproject.toml of such a package:

        [project.entry-points."spinformer.extensions"]
        my_methods = "my_package.methods"

    One that fails is reported in one line on standard error, and the command goes on without it.
    """
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:  # whatever goes wrong in a stranger's module
            reason = " ".join(str(error).split())
            message = f"the extension {entry.name!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {reason}"
            print(f"spinformer: {message}", file=sys.stderr)
