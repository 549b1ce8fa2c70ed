"""Free memory, from made-up files of the kinds that Linux has."""

import pytest

from spinformer._base.memory import free_memory

GIB = 2**30


def machine(root, gibibytes):
    (root / "proc").mkdir()
    kib = gibibytes * 2**20
    (root / "proc/meminfo").write_text(f"MemTotal: {4 * kib} kB\nMemFree: 7 kB\nMemAvailable: {kib} kB\n")


def test_what_the_machine_says(tmp_path):
    machine(tmp_path, 8)
    assert free_memory(tmp_path) == 8 * GIB


def container(root, limit, taken, folder="", names=("memory.max", "memory.current")):
    group = root / "sys/fs/cgroup" / folder
    group.mkdir(parents=True, exist_ok=True)
    for name, content in zip(names, (limit, taken), strict=True):
        (group / name).write_text(f"{content}\n")


def test_the_limit_of_a_container_counts(tmp_path):
    machine(tmp_path, 64)
    container(tmp_path, 4 * GIB, GIB)
    assert free_memory(tmp_path) == 3 * GIB
    container(tmp_path, "max", GIB)
    assert free_memory(tmp_path) == 64 * GIB


@pytest.mark.parametrize(("limit", "left"), [(2**63 - 4096, 64 * GIB), (2 * GIB, GIB), (GIB // 2, 0)])
def test_older_control_groups(tmp_path, limit, left):
    """Without a limit they give a huge number."""
    machine(tmp_path, 64)
    container(tmp_path, limit, GIB, "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes"))
    assert free_memory(tmp_path) == left


def test_it_is_not_known_everywhere(tmp_path):
    assert free_memory(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemAvailable: much\n")
    assert free_memory(tmp_path) is None


def test_this_machine():
    free = free_memory()
    assert free is None or free > 0
