"""`import spinformer`: names that are loaded when used, with torch alone, or one line that names the extra."""

import json
import re
import subprocess
import sys

import pytest

from tests.fresh import TRANSFORMERS, run

# Libraries that extras bring.
EXTRAS = ("transformers", "datasets", "matplotlib", "gradio", "shap", "shapiq", "pandas", "PIL", "yaml", "accelerate")
ONE_LINE = re.compile(r"[\w.]+ is not installed; `pip install 'spinformer\[\w+\]'` brings it")
HIDE = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""
NAMES = (
    "Explainer",
    "explain",
    "ground",
    "load_classifier",
    "Explanation",
    "ExplanationSet",
    "NeuroGameAttention",
    "AttractorAttention",
)
CORE = ("Explanation", "ExplanationSet", "NeuroGameAttention", "AttractorAttention")


def answer(code, **options):
    """What the code prints last, as JSON."""
    done = run(code, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_name_is_there():
    done = run(f"import spinformer as s; {', '.join(f's.{name}' for name in NAMES)}", imports=TRANSFORMERS)
    assert done.returncode == 0, done.stderr
    code = "import json, spinformer; print(json.dumps([spinformer.__all__, dir(spinformer)]))"
    public, listed = answer(code)
    assert set(NAMES) <= set(public) <= set(listed)


def test_unknown_names():
    done = run("import spinformer; spinformer.Explain")
    assert "AttributeError: module 'spinformer' has no attribute 'Explain'" in done.stderr


def test_importing_loads_torch_and_nothing_else():
    """Of the package itself, only what makes names lazy."""
    code = "import json, sys, torch; before = set(sys.modules); import spinformer; " + (
        "print(json.dumps([sorted(sys.modules), sorted(set(sys.modules) - before)]))"
    )
    loaded, added = answer(code)
    assert not set(EXTRAS) & {name.split(".")[0] for name in loaded}
    assert "spinformer.explain" not in loaded
    assert {name for name in added if not name.startswith("spinformer._base")} == {"spinformer"}


def test_importing_takes_no_longer_than_torch():
    """The package without torch takes at most a tenth of what torch takes, in one of three processes."""
    code = (
        "import json, time\n"
        "start = time.perf_counter(); import torch; torch_seconds = time.perf_counter() - start\n"
        "start = time.perf_counter(); import spinformer; seconds = time.perf_counter() - start\n"
        "print(json.dumps([torch_seconds, seconds]))"
    )

    def quick():
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        torch_seconds, seconds = json.loads(done.stdout)
        return seconds <= 0.1 * torch_seconds

    assert any(quick() for _ in range(3))


def test_the_function_and_the_package_of_one_name():
    """`spinformer.explain` can be called, and holds the modules of the package, in whatever order they are loaded."""
    for first in ("import spinformer.explain.methods", "spinformer.explain", "spinformer.Explainer"):
        code = f"import spinformer; {first}; import spinformer.explain.record; " + (
            "import json; print(json.dumps([callable(spinformer.explain), hasattr(spinformer.explain, 'METHODS'), "
            "hasattr(spinformer.explain, 'record')]))"
        )
        assert answer(code, imports=TRANSFORMERS) == [True, True, True], first


class TestWithoutExtras:
    def test_what_needs_torch_alone(self):
        code = f"{HIDE}\nimport spinformer as s, torch\n" + (
            f"{', '.join(f's.{name}' for name in CORE)}\n"
            "x = torch.randn(2, 3, 8)\n"
            "print(s.NeuroGameAttention(8, heads=2)(x).attention.shape)\n"
            "print(s.AttractorAttention(3, 8).step(x).shape)\n"
        )
        done = run(code)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == ["torch.Size([2, 2, 3])", "torch.Size([2, 3, 8])"]

    def test_an_explanation_can_be_read_and_shown(self, tmp_path):
        from spinformer.explain import Explanation, Pair, Word

        words = (Word("not", 0, 0.5, 0.1), Word("good", 0, -0.25))
        probabilities = {"yes": 0.75, "no": 0.25}
        explanation = Explanation(
            ("not good",), "yes", "yes", probabilities, words, (Pair(0, 1, 0.5),), None, "x", 1, 0
        )
        path = explanation.save(tmp_path / "one.json")
        code = f"{HIDE}\nimport spinformer\none = spinformer.Explanation.load({str(path)!r})\n" + (
            "assert 'good' in str(one) and 'good' in one._repr_html_() and 'good' in one.to_html()\n"
            "for ask in (one.to_frame, one.to_shap, one.to_shapiq, one.plot):\n"
            "    try:\n"
            "        ask()\n"
            "    except ModuleNotFoundError as error:\n"
            "        print(error)\n"
        )
        done = run(code)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) == 4
        assert all(map(ONE_LINE.fullmatch, lines)), lines

    @pytest.mark.parametrize("name", sorted(set(NAMES) - set(CORE)))
    def test_other_names_say_which_extra(self, name):
        done = run(f"{HIDE}\nimport spinformer\nspinformer.{name}")
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        kind, _, message = last.partition(": ")
        assert kind == "ModuleNotFoundError"
        assert message == "transformers is not installed; `pip install 'spinformer[nli]'` brings it"

    def test_every_module_imports_or_says_which_extra(self):
        """All of them in one process; each error is one line."""
        code = f"{HIDE}\nimport importlib, json, pkgutil, spinformer\n" + (
            "modules, errors = [], {}\n"
            "for module in pkgutil.walk_packages(spinformer.__path__, 'spinformer.', onerror=lambda name: None):\n"
            "    modules.append(module.name)\n"
            "    try:\n"
            "        importlib.import_module(module.name)\n"
            "    except BaseException as error:\n"
            "        errors[module.name] = [type(error).__name__, str(error)]\n"
            "print(json.dumps([modules, errors]))"
        )
        modules, errors = answer(code)
        assert len(modules) > 120
        for name, (kind, message) in list(errors.items()):
            if name.startswith("spinformer.kernels.device."):  # only operators import them, where there is Triton
                del errors[name]
                continue
            assert kind == "ModuleNotFoundError", (name, kind, message)
            assert ONE_LINE.fullmatch(message), (name, message)
        free = ("_base", "games", "ising", "attractor", "attention", "data", "cli", "explain")
        held = {name for name in errors if name.split(".")[1] in free}
        assert not held, held
        assert "spinformer.models.pooling" not in errors
        assert "spinformer.training.game" not in errors

    @pytest.mark.parametrize("command", ["explain", "evaluate", "ground", "train nli", "app", "demo", "retrieve"])
    def test_help_needs_none(self, command):
        done = run(
            f"{HIDE}\nimport sys\nfrom spinformer.cli import main\nsys.exit(main({[*command.split(), '--help']!r}))"
        )
        assert done.returncode == 0, done.stderr
        assert f"usage: spinformer {command}" in done.stdout

    @pytest.mark.parametrize(
        ("words", "extra"),
        [
            (["explain", "someone/model", "a text"], "nli"),
            (["predict", "someone/model", "sample:test"], "nli"),
            (["evaluate", "someone/model", "sample:test"], "nli"),
            (["train", "nli", "--output", "nowhere"], "nli"),
            (["ground", "someone/model", "sample:test", "--output", "nowhere"], "nli"),
            (["app"], "app"),
            (["retrieve", "nowhere"], "plot"),
        ],
        ids=lambda part: part if isinstance(part, str) else part[0],
    )
    def test_commands_say_which_extra(self, words, extra, tmp_path):
        start = f"{HIDE}\nimport os, sys\nos.chdir({str(tmp_path)!r})\n"
        code = f"{start}from spinformer.cli import main\nsys.exit(main({words!r}))"
        done = run(code)
        assert done.returncode == 2, done.stderr
        (line,) = done.stderr.strip().splitlines()
        assert f"spinformer[{extra}]" in line
        assert line.startswith("spinformer ")
