"""How much memory of the host is free."""

from pathlib import Path

# Files that say in bytes what a container may take and what it has taken, of both versions of control groups.
LIMITS = (
    ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def free_memory(root: Path = Path("/")) -> int | None:
    """Bytes that may still be taken, by the machine and by the limit of a container; None where neither is told.

    root: of the file system.
    """
    found = [left for files in LIMITS for left in _left(*(root / file for file in files))]
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        pass
    return max(0, min(found)) if found else None


def _left(limit: Path, taken: Path) -> list[int]:
    """The difference of the numbers in two files; none where one holds no number, as where there is no limit."""
    try:
        return [int(limit.read_text()) - int(taken.read_text())]
    except (OSError, ValueError):
        return []
