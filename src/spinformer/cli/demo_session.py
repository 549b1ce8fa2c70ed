"""Python that is shown and run: what the demo prints after `>>>` is what it does."""

from typing import Any

from spinformer._base.progress import is_quiet


class Session:
    """Lines of Python with their names, as in an interactive shell."""

    def __init__(self, **names: Any) -> None:
        self.names = names

    def run(self, code: str) -> None:
        """Show the lines, then run them."""
        code = code.strip("\n")
        if not is_quiet():
            print()
            for line in code.splitlines():
                print(f"{'...' if line.startswith((' ', ')')) else '>>>'} {line}", flush=True)
        exec(compile(code, "<demo>", "exec"), self.names)

    def __getitem__(self, name: str) -> Any:
        return self.names[name]


def heading(text: str) -> None:
    """Print the title of a part."""
    print(f"\n{text}\n{'-' * len(text)}", flush=True)
