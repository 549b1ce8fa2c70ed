"""What commands import: no package, and no part of our own, that they do not use."""

import gc
from pathlib import Path

import pytest
import torch

from spinformer.cli import COMMANDS as ALL
from spinformer.cli import main, parse
from spinformer.cli.collecting import no_collection
from tests import fresh

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "checkpoints" / "neurogame-minilm-nli"
PACKAGES = {"captum", "datasets", "gradio", "matplotlib", "pandas", "peft", "pyarrow", "shap", "shapiq", "sklearn"}
HEAVY = PACKAGES | {"numpy", "torch", "transformers"}
OWN = [name for name, (module, _) in ALL.items() if module.startswith("spinformer.")]
OTHERS = ("spinformer.app", "spinformer.training.attractor", "spinformer.training.classifier", "tensorboard")
COMMANDS = {
    "explain": (["A man sleeps.", "Nobody is awake."], "", ("spinformer.evaluate", *OTHERS)),
    "predict": ([], "A man sleeps.\tNobody is awake.\n", ("spinformer.explain", *OTHERS)),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_what_it_uses(name):
    """Beside what transformers imports by itself, which was there before."""
    words, given, unused = COMMANDS[name]
    code = f"""
import sys
before = set(sys.modules)
from spinformer.cli import main
status = main({[name, str(CHECKPOINT), *words]!r})
added = set(sys.modules) - before
print(*(module for module in added if module.split(".")[0] in {PACKAGES!r} or module.startswith({unused!r})), sep="\\n")
sys.exit(status)
"""
    done = fresh.run(code, imports=fresh.TRANSFORMERS, folder=ROOT, given=given)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "contradiction" in lines[0]
    assert lines[-1] == ""


@pytest.mark.parametrize(
    ("options", "needed"), [([], False), (["--passes", "8"], False), (["--method", "layer"], True)], ids=str
)
def test_explain_imports_transformers_only_where_it_is_needed(options, needed):
    """In a process of its own; what it falls back on knows our classifiers."""
    code = f"""
import sys
sys.argv = {["spinformer", "explain", "small", "A man sleeps.", "Nobody is awake.", *options]!r}
from spinformer.cli import main
status = main()
assert ("transformers" in sys.modules) is {needed}
assert "torch._dynamo" not in sys.modules or {needed}
sys.exit(status)
"""
    done = fresh.run(code, folder=ROOT)
    assert done.returncode == 0, done.stderr
    assert "contradiction" in done.stdout.splitlines()[0]


@pytest.mark.parametrize("words", [["--help"], ["--nonsense"]], ids=["help", "a wrong option"])
@pytest.mark.parametrize("name", OWN)
def test_help_and_wrong_options_import_no_torch(name, words):
    code = f"""
import sys
from spinformer.cli import main
try:
    main({[*name.split(), *words]!r})
finally:
    assert not {HEAVY!r} & set(sys.modules)
"""
    done = fresh.run(code, imports=fresh.NOTHING)
    assert done.returncode == (0 if words == ["--help"] else 2), done.stderr
    assert (
        done.stdout
        if words == ["--help"]
        else "unrecognized arguments: --nonsense" in done.stderr
        or ("the following arguments are required" in done.stderr)
    )


def test_completion_imports_no_torch():
    """Of the commands of the package; those of a clone are left out, as they are where it is installed alone."""
    code = f"""
import sys
from spinformer.cli import commands, main

def missing(name):
    raise FileNotFoundError(name)

commands.load_command = missing
status = main(["completion", "bash"])
assert not {HEAVY!r} & set(sys.modules)
sys.exit(status)
"""
    done = fresh.run(code, imports=fresh.NOTHING)
    assert done.returncode == 0, done.stderr
    assert all(f"'{name}') flags=" in done.stdout or f"{name}) flags=" in done.stdout for name in OWN)


def test_a_command_that_lacks_its_text_imports_no_failing_library():
    """What a failure is called is found without torch, if nothing has imported it."""
    code = f"""
import sys
from spinformer.cli.failures import explain_failure
status = explain_failure("explain", ValueError("expected a TEXT"))
assert not {HEAVY!r} & set(sys.modules)
sys.exit(status)
"""
    assert fresh.run(code, imports=fresh.NOTHING).returncode == 2


def test_a_device_is_chosen_where_none_is_given():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert parse(["predict", "small"]).device == expected
    assert parse(["predict", "small", "--device", "meta"]).device == "meta"


def test_garbage_is_collected_as_before():
    before, frozen = (gc.get_threshold(), gc.isenabled()), gc.get_freeze_count()
    with pytest.raises(SystemExit):
        main(["predict", "--help"])
    with no_collection():
        assert not gc.isenabled()
    assert (gc.get_threshold(), gc.isenabled()) == before
    assert gc.get_freeze_count() <= frozen


@pytest.mark.parametrize(("call", "registered"), [("main()", True), ("main(['--version'])", False)])
def test_only_a_process_of_its_own_ends_without_a_search_for_garbage(call, registered):
    code = f"""
import atexit, gc, sys
calls = []
atexit.register = lambda function: calls.append(function)
sys.argv = ["spinformer", "--version"]
from spinformer.cli import main
{call}
assert (gc.freeze in calls) is {registered}
"""
    done = fresh.run(code)
    assert done.returncode == 0, done.stderr
