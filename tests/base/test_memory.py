"""Free memory, from made-up files of the kinds that Linux has."""

from spinformer._base.memory import free_memory

GIB = 2**30


def machine(root, gibibytes):
    (root / "proc").mkdir()
    kib = gibibytes * 2**20
    (root / "proc/meminfo").write_text(f"MemTotal: {4 * kib} kB\nMemFree: 7 kB\nMemAvailable: {kib} kB\n")


def test_what_the_machine_says(tmp_path):
    machine(tmp_path, 8)
    assert free_memory(tmp_path) == 8 * GIB


def test_the_limit_of_a_container_counts(tmp_path):
    machine(tmp_path, 64)
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text(f"{4 * GIB}\n")
    (group / "memory.current").write_text(f"{GIB}\n")
    assert free_memory(tmp_path) == 3 * GIB
    (group / "memory.max").write_text("max\n")
    assert free_memory(tmp_path) == 64 * GIB


def test_older_control_groups(tmp_path):
    """Without a limit they give a huge number."""
    machine(tmp_path, 64)
    group = tmp_path / "sys/fs/cgroup/memory"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text(f"{2**63 - 4096}\n")
    (group / "memory.usage_in_bytes").write_text(f"{GIB}\n")
    assert free_memory(tmp_path) == 64 * GIB
    (group / "memory.limit_in_bytes").write_text(f"{2 * GIB}\n")
    assert free_memory(tmp_path) == GIB
    (group / "memory.limit_in_bytes").write_text(f"{GIB // 2}\n")
    assert free_memory(tmp_path) == 0


def test_it_is_not_known_everywhere(tmp_path):
    assert free_memory(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemAvailable: much\n")
    assert free_memory(tmp_path) is None


def test_this_machine():
    free = free_memory()
    assert free is None or free > 0
