"""What commands import: no package, and no part of our own, that they do not use."""

import gc
from pathlib import Path

import pytest

from spinformer.cli import main
from tests import fresh

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "checkpoints" / "neurogame-minilm-nli"
PACKAGES = {"captum", "datasets", "gradio", "matplotlib", "pandas", "peft", "pyarrow", "shap", "shapiq", "sklearn"}
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


@pytest.mark.parametrize("name", ["app", "completion", "demo", "overview", "predict"])
def test_help_imports_no_transformers(name):
    code = f"""
import sys
from spinformer.cli import main
try:
    main({[name, "--help"]!r})
finally:
    assert not {PACKAGES | {"transformers"}!r} & set(sys.modules)
"""
    done = fresh.run(code)
    assert done.returncode == 0, done.stderr


def test_garbage_is_collected_as_before():
    before = gc.get_threshold()
    with pytest.raises(SystemExit):
        main(["predict", "--help"])
    assert gc.get_threshold() == before


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
