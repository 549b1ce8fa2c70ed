"""The wheel in an environment of torch and its kin alone, outside a clone: what imports, what runs, what is inside."""

import email
import json
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from spinformer.cli import COMMANDS
from tests import fresh

ROOT = Path(__file__).parents[1]
CORE = ("torch", "numpy", "safetensors", "tqdm", "filelock")
WALK = """
import importlib, pkgutil, sys
import spinformer
for module in pkgutil.walk_packages(spinformer.__path__, "spinformer.", onerror=lambda name: None):
    if module.name.endswith("__main__") or module.name.startswith("spinformer.kernels.device."):
        continue  # what runs on a GPU is imported by its operators alone, where there is Triton
    try:
        importlib.import_module(module.name)
        print("imports", module.name)
    except ModuleNotFoundError as error:
        print("needs", module.name, repr(str(error)))
"""
COMMAND_LINES = """
import contextlib, io, json, sys
from spinformer.cli import main
results = []
for line in json.loads(sys.stdin.read()):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(line.split())
        except SystemExit as stop:
            status = stop.code or 0
    results.append((line, status, out.getvalue(), err.getvalue()))
print(json.dumps(results))
"""
README = (ROOT / "README.md").read_text(encoding="utf-8")
# The lines of README, where no other machine can be reached, with a tiny encoder in place of BERT and a small game.
OFFLINE = """
import shlex, socket
def refuse(*address):
    raise OSError("this test has no network")
socket.socket.connect = refuse
import functools
from spinformer.data import load_texts
from spinformer.explain import explainer as held
held.hold_out = functools.partial(held.hold_out, count=8)
few = load_texts("sample:train").select(range(160))
"""
SMALL_GAME = "few, epochs=1, subsets=1, heads=4, dim=16, hidden=32, readout=16"
ONE_LINE = re.compile(r"\S+ is not installed; `pip install 'spinformer\[\w+\]'` brings it")


def closure(names):
    """These distributions and all that they need here."""
    waiting, known = list(names), {}
    while waiting:
        name = re.split(r"[^\w.-]", waiting.pop())[0].lower().replace("_", "-")
        if name in known:
            continue
        try:
            known[name] = distribution(name)
        except PackageNotFoundError:
            continue
        waiting += [need for need in known[name].requires or () if "extra ==" not in need]
    return known.values()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        ".",
    ]
    subprocess.run(command, cwd=ROOT, check=True)
    (path,) = folder.glob("*.whl")
    return path


def environment(wheel, folder, names):
    """The interpreter of an environment that has the wheel, and of other packages these with what they need."""
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for found in closure(names):
        top = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "bin", "__pycache__")}
        for name in top:
            target, link = Path(found.locate_file(name)), site / name
            if target.exists() and not link.exists():
                link.symlink_to(target)
    return str(folder / "bin" / "python")


def needs_of(wheel, extra):
    """The names of the packages that an extra of the wheel brings."""
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    needs = email.message_from_bytes(archive.read(metadata)).get_all("Requires-Dist")
    for need in needs:
        if need.endswith(f"extra == '{extra}'") or need.endswith(f'extra == "{extra}"'):
            others = re.match(r"spinformer\[([\w,]+)\]", need)
            for name in others[1].split(",") if others else ():
                yield from needs_of(wheel, name)
            if not others:
                yield need


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """An environment with CORE."""
    return environment(wheel, tmp_path_factory.mktemp("environment"), CORE)


def run_commands(python, folder, commands):
    """Each command with its status and what it wrote, all in one process."""
    done = fresh.run(COMMAND_LINES, python=python, folder=folder, given=json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_what_is_inside(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith("spinformer") for name in names)
    package = [name for name in names if name.startswith("spinformer/")]
    for word in ("research", "experiments", "bench", "results", "recipes", "reports", "test"):
        assert not [name for name in package if word in name.split("/")[1:-1]], word
    model = [name for name in package if name.startswith("spinformer/models/small/")]
    others = [name for name in package if name.endswith((".yaml", ".yml", ".json", ".md")) and name not in model]
    assert all("NOTICE" in name or "LICENSE" in name for name in others)
    assert {name.removeprefix("spinformer/models/small/") for name in model} == {
        *("NOTICE.md", "README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
        *("game/game.json", "game/game.safetensors", "game/misfit.json", "game/probe.safetensors"),
    }


def test_licences_of_all_that_is_inside(wheel):
    """The metadata name the licence of the code and of each sample of data, and bring their texts."""
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    fields = email.message_from_bytes(archive.read(metadata))
    assert fields["License-Expression"] == "Apache-2.0 AND CC-BY-SA-4.0 AND CC-BY-SA-3.0"
    named = fields.get_all("License-File")
    for name in named:
        assert metadata.replace("METADATA", f"licenses/{name}") in archive.namelist()
    folders = {name.rpartition("/")[0] for name in archive.namelist() if name.endswith((".gz", ".npz", ".safetensors"))}
    assert len(folders) == 5
    for folder in folders - {"spinformer/models/small/game"}:  # of which the notice of the classifier speaks
        assert any(f"src/{folder}/" in name for name in named), folder
    texts = " ".join(archive.read(metadata.replace("METADATA", f"licenses/{name}")).decode() for name in named)
    for words in ("Apache License", "CC BY-SA 4.0", "Attribution-ShareAlike 3.0"):
        assert words in texts


@pytest.mark.slow
def test_every_module_imports_or_names_its_extra(python, tmp_path):
    done = fresh.run(WALK, python=python, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    imported = {line[1] for line in lines if line[0] == "imports"}
    for line in lines:
        if line[0] == "needs":
            assert ONE_LINE.fullmatch(line[2].strip("'\"")), line
    for name in ("games", "ising", "attention", "attractor", "data", "models", "models.attractor", "explain", "cli"):
        assert f"spinformer.{name}" in imported
    assert "spinformer.explain.explanation" in imported


@pytest.mark.slow
def test_front_door(python, tmp_path):
    code = "import spinformer as s; print(s.__version__, s.Explanation, s.NeuroGameAttention, s.AttractorAttention)"
    done = fresh.run(code, python=python, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("Explainer", "explain", "ground", "load_classifier"):
        done = fresh.run(f"import spinformer; spinformer.{name}", python=python, folder=tmp_path)
        assert done.returncode == 1
        assert ONE_LINE.search(done.stderr.strip().splitlines()[-1]), done.stderr


@pytest.mark.slow
def test_every_command_helps(python, tmp_path):
    for command, status, out, err in run_commands(python, tmp_path, [f"{command} --help" for command in COMMANDS]):
        if status == 0:
            assert "usage:" in out, command
        else:
            assert len(err.strip().splitlines()) == 1, f"{command}: {err}"


@pytest.mark.slow
def test_every_command_runs_or_says_what_it_needs(python, tmp_path):
    commands = [
        "demo --epochs 1",
        "completion bash",
        "explain model TEXT",
        "overview explained.jsonl",
        "evaluate model sample:test",
        "predict model texts.jsonl",
        "ground model sample:train",
        "train nli --output out",
        "app",
        "retrieve network.safetensors",
        "bench exact",
        "torture --only files",
        "reproduce nli --stage heads --data .",
        "train attractor --limit 16 --epochs 1 --patch 7 --sites 2 --output net.safetensors",
    ]
    assert {command for command in COMMANDS if not command.startswith("reproduce")} <= {
        name for name in COMMANDS for command in commands if command.startswith(name)
    }
    for command, status, _, err in run_commands(python, tmp_path, commands):
        if status:
            assert len(err.strip().splitlines()) == 1, f"{command}: {err}"
            assert err.startswith("spinformer "), f"{command}: {err}"
    assert (tmp_path / "net.safetensors").is_file()  # which needs no extra


@pytest.mark.slow
def test_readme_runs_where_it_is_installed(wheel, encoder, tmp_path):
    """All its Python and its commands, outside the clone, without a network, with the one extra that it names."""
    (extra,) = re.findall(r'^pip install "\.\[(\w+)\]"$', README, re.MULTILINE)
    python = environment(wheel, tmp_path / "environment", (*CORE, *needs_of(wheel, extra)))
    folder = tmp_path / "elsewhere"
    shutil.copytree(encoder, folder / "google-bert" / "bert-base-uncased")
    lines = [OFFLINE]
    for language, block in re.findall(r"^```(python|console)\n(.*?)^```", README, re.DOTALL | re.MULTILINE):
        if language == "python":
            lines.append(block.replace('ground("sample:train")', f"ground({SMALL_GAME})"))
        for command in block.splitlines():
            if language == "console" and command.startswith("spinformer ") and "MODEL" not in command:
                words = command.partition("#")[0].removeprefix("spinformer ")
                lines.append(f"import spinformer.cli\nassert spinformer.cli.main(shlex.split({words!r})) == 0\n")
    assert sum("cli.main" in line for line in lines) >= 1
    done = fresh.run("\n".join(lines), python=python, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "contradiction" in done.stdout
    for name in ("why.html", "why.svg", "why.json", "runs/mine/model.safetensors"):
        assert (folder / name).is_file(), name
