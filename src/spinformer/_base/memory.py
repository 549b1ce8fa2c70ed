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
    found = [_number(root / limit) - _number(root / taken) for limit, taken in LIMITS if _told(root, limit, taken)]
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        pass
    return max(0, min(found)) if found else None


def _told(root: Path, *files: str) -> bool:
    """Whether these files hold numbers: where there is no limit, one of them does not."""
    try:
        return all(_number(root / file) >= 0 for file in files)
    except (OSError, ValueError):
        return False


def _number(path: Path) -> int:
    return int(path.read_text())
