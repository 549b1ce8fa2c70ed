"""Recipes: from YAML, from flags, what is refused, and what the files in research/recipes/nli say."""

import argparse
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("yaml")

from research.experiments.nli_stages import TAUGHT
from spinformer.attention.settings import settings
from spinformer.training.classifier import recipe as recipe_module
from spinformer.training.classifier.recipe import ClassifierRecipe, configure

CONFIGS = Path(__file__).parents[2] / "research" / "recipes" / "nli"
NAMES = [option.name for option in fields(ClassifierRecipe)]


def write(folder, name="recipe.yaml", text=""):
    path = folder / name
    path.write_text(text)
    return path


def parse(words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    configure(parser)
    return vars(parser.parse_args(words))


def test_from_yaml(tmp_path):
    path = write(
        tmp_path,
        text="""
        head: cls
        learning_rate: 3e-5        # which YAML reads as text
        clip: 1                    # which YAML reads as an integer
        schedule: steps
        milestones: [1, 2.5]
        game: {heads: 4}
        limit: null
        """,
    )
    recipe = ClassifierRecipe.read(path)
    assert (recipe.head, recipe.learning_rate, recipe.clip) == ("cls", 3e-5, 1.0)
    assert isinstance(recipe.clip, float)
    assert recipe.milestones == [1.0, 2.5]
    assert all(isinstance(epoch, float) for epoch in recipe.milestones)
    assert (recipe.game, recipe.limit, recipe.epochs) == ({"heads": 4}, None, ClassifierRecipe().epochs)
    assert ClassifierRecipe.of(recipe.to_dict()) == recipe


def test_an_empty_file_is_the_defaults(tmp_path):
    assert ClassifierRecipe.read(write(tmp_path, text="# nothing\n")) == ClassifierRecipe()


def test_base_is_read_first(tmp_path):
    (tmp_path / "deeper").mkdir()
    write(tmp_path, "first.yaml", "epochs: 7\nseed: 1\nhead: mean\n")
    write(tmp_path, "second.yaml", "base: first.yaml\nseed: 2\n")
    recipe = ClassifierRecipe.read(write(tmp_path / "deeper", "third.yaml", "base: ../second.yaml\nhead: cls\n"))
    assert (recipe.epochs, recipe.seed, recipe.head) == (7, 2, "cls")


def test_a_base_that_is_its_own_base(tmp_path):
    write(tmp_path, "a.yaml", "base: b.yaml\n")
    with pytest.raises(ValueError, match=r"b\.yaml: it is its own base, through other files"):
        ClassifierRecipe.read(write(tmp_path, "b.yaml", "base: a.yaml\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lerning_rate: 1\n", r"recipe\.yaml: unknown option\(s\) lerning_rate; there are: encoder, head"),
        ("- a\n- b\n", r"recipe\.yaml: expected `option: value` lines; got list"),
        ("a: [b\n", r"recipe\.yaml: not YAML"),
        ("epochs: many\n", "epochs must be int; got 'many'"),
        ("epochs: 2.5\n", "epochs must be int; got 2.5"),
        ("epochs: true\n", "epochs must be int; got True"),
        ("epochs: null\n", "epochs must be int; got None"),
        ("epochs: 0\n", "epochs must be an integer of at least 1; got 0"),
        ("learning_rate: fast\n", "learning_rate must be float; got 'fast'"),
        ("learning_rate: true\n", "learning_rate must be float; got True"),
        ("learning_rate: nan\n", "learning_rate must be finite and positive; got nan"),
        ("residual: 1\n", "residual must be bool; got 1"),
        ("head: best\n", "head must be one of 'neurogame', 'cls', 'mean', .*; got 'best'"),
        ("head: [cls]\n", r"head must be one of .*; got \['cls'\]"),
        ("milestones: 3\n", "milestones must be a list; got 3"),
        ("milestones: [3]\n", "schedule 'steps' and milestones go together"),
        ("schedule: steps\n", "schedule 'steps' and milestones go together"),
        ("game: paper\n", "game must be dict; got 'paper'"),
        ("train: 3\n", "train must be str; got 3"),
        ("names: a,b\n", "names must be a list; got 'a,b'"),
        ("dropout: 1.0\n", r"dropout must be in \[0, 1\); got 1.0"),
        ("weight_decay: -1\n", "weight_decay must not be negative; got -1"),
        ("weight_decay: nan\n", "weight_decay must not be negative; got nan"),
        ("teacher_weight: 2\n", r"teacher_weight must be in \[0, 1\]; got 2"),
        ("views: 2\n", "views are for a teacher to label, and there is none; got views 2"),
        ("near: minilm\n", "near is for views of texts, and there are none; got near 'minilm' and views 1"),
        ("head: dam\n", "head must be one of 'neurogame', 'cls', 'mean', .*; got 'dam'"),
        ("baseline: bow\n", "baseline must be one of 'dam', 'esim'; got 'bow'"),
        ("baseline: dam\n", "baseline 'dam' needs `vectors`"),
        ("baseline: dam\ncompile: true\n", "compile is for an encoder, and baseline 'dam' has none"),
        ("baseline: dam\nvectors: v.txt\nhead: cls\n", "baseline 'dam' has no pooling head; got head 'cls'"),
        ("gate: false\n", r"recipe\.yaml: removed option\(s\) gate; commit 91dd5b7 was the last that had them"),
        ("gate: true\nlayers: [0]\n", r"recipe\.yaml: removed option\(s\) gate, layers; commit 91dd5b7 was the last"),
        ("max_length: 4\n", "max_length must be an integer of at least 8; got 4"),
        ("limit: 0\n", "limit must be an integer of at least 1; got 0"),
        ("save_steps: -1\n", "save_steps must be an integer of at least 0; got -1"),
        ("seed: -1\n", "seed must be an integer of at least 0; got -1"),
        ("workers: -1\n", "workers must be an integer of at least 0; got -1"),
        ("vector_length: 0\n", "vector_length must be finite and positive; got 0"),
        ("base: 3\n", r"recipe\.yaml: base must be a file name; got 3"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as raised:
        ClassifierRecipe.read(write(tmp_path, text=text))
    assert "\n" not in str(raised.value)


def test_recipes_of_earlier_runs():
    stored = {**ClassifierRecipe(epochs=5).to_dict(), "gate": False, "layers": []}
    del stored["baseline"]
    assert ClassifierRecipe.of(stored, stored=True) == ClassifierRecipe(epochs=5)
    words = ClassifierRecipe.of({**stored, "head": "esim", "vectors": "v.txt"}, stored=True)
    assert (words.baseline, words.head, words.vectors) == ("esim", "neurogame", "v.txt")
    for options in ({"gate": True}, {"layers": [0, 3]}):
        with pytest.raises(
            ValueError, match=r"was removed; only .* The last commit with this option is 91dd5b7"
        ) as raised:
            ClassifierRecipe.of({**stored, **options}, stored=True)
        assert "\n" not in str(raised.value)


def test_a_new_pooling_head_is_known_to_recipes_and_flags():
    from spinformer.models.pooling import POOLING_HEADS, Mean, PoolingHead

    POOLING_HEADS.register(PoolingHead("average", "a mean by another name", lambda options: Mean()))
    try:
        assert ClassifierRecipe(head="average").head == "average"
        assert parse(["--head", "average"]) == {"head": "average"}
        parser = argparse.ArgumentParser()
        configure(parser)
        assert "average" in parser.format_help()
    finally:
        POOLING_HEADS.unregister("average")
    with pytest.raises(ValueError, match=r"head must be one of .*; got 'average'"):
        ClassifierRecipe(head="average")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no recipe .*none\.yaml"):
        ClassifierRecipe.read(tmp_path / "none.yaml")
    with pytest.raises(FileNotFoundError, match=r"no recipe .*none\.yaml"):
        ClassifierRecipe.read(write(tmp_path, text="base: none.yaml\n"))


# Flags.


def test_every_option_has_a_flag():
    assert parse([]) == {}  # what is not given does not replace what a file says
    parser = argparse.ArgumentParser()
    configure(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    assert {f"--{name.replace('_', '-')}" for name in NAMES} <= flags
    shown = parser.format_help()
    for option in fields(ClassifierRecipe):
        assert option.metadata["help"]
        assert f"--{option.name.replace('_', '-')}" in shown


def test_flags():
    words = "--head cls --learning-rate 3e-5 --no-residual --milestones 1 2.5 --schedule steps --names yes no"
    given = parse([*words.split(), "--game", '{"heads": 4}', "--limit", "9", "--vector-length", "2"])
    recipe = ClassifierRecipe(epochs=9, ema=0.5).change(**given)
    assert (recipe.head, recipe.learning_rate, recipe.residual, recipe.milestones) == ("cls", 3e-5, False, [1.0, 2.5])
    assert (recipe.game, recipe.limit, recipe.vector_length, recipe.names) == ({"heads": 4}, 9, 2.0, ["yes", "no"])
    assert (recipe.epochs, recipe.ema) == (9, 0.5)


@pytest.mark.parametrize(
    "words", [["--game", "heads=4"], ["--game", "[1]"], ["--head", "best"], ["--epochs", "2.5"], ["--clip", "x"]]
)
def test_wrong_flags(words):
    with pytest.raises(argparse.ArgumentError):
        parse(words)


# The files that come with the project.


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_file_reads(path):
    recipe = ClassifierRecipe.read(path)
    assert recipe.head == {"distil": "joint", "grounded": "grounded"}.get(path.stem, "neurogame")
    assert recipe.baseline == (path.stem if path.stem in ("dam", "esim") else None)
    options = {name: value for name, value in recipe.game.items() if name not in GAME}
    settings(options.pop("preset", "default"), options)  # no unknown option


GAME = ("heads", "head_dim", "temperature", "samples", "eval_samples")


def test_the_paper_recipe_has_the_papers_numbers():
    recipe = ClassifierRecipe.read(CONFIGS / "paper.yaml")
    assert (recipe.encoder, recipe.head, recipe.train) == ("bert-base", "neurogame", "snli:train")
    assert (recipe.learning_rate, recipe.weight_decay, recipe.warmup, recipe.clip) == (3e-5, 0.02, 0.1, 1.0)
    assert (recipe.schedule, recipe.milestones, recipe.factor, recipe.epochs) == ("steps", [3.0, 4.0], 0.1, 5)
    assert (recipe.batch_size, recipe.accumulation) == (32, 2)
    assert (recipe.dropout, recipe.label_smoothing, recipe.mixup, recipe.ema) == (0.15, 0.1, 0.2, 0.999)
    assert (recipe.max_length, recipe.head_factor, recipe.consistency, recipe.teacher) == (128, 1.0, 0.0, None)
    game = dict(recipe.game)
    assert (game.pop("temperature"), game.pop("samples"), game.pop("eval_samples")) == (0.25, 15, 25)
    chosen = settings(game.pop("preset"), game)
    assert (chosen.damping, chosen.max_steps, chosen.tol) == (0.7, 25, 1e-4)
    assert (chosen.weighting, chosen.estimator, chosen.solver, chosen.units) == ("gibbs", "plain", "damped", "paper")


def test_an_encoder_and_the_heads_on_it_have_one_lesson():
    distil, taught = (ClassifierRecipe.read(CONFIGS / f"{name}.yaml") for name in ("distil", "taught"))
    for option in ("train", "teacher", "teacher_weight", "views", "max_length"):
        assert getattr(distil, option) == getattr(taught, option), option
    assert (taught.near, taught.encoder) == (distil.encoder, "runs/nli/distil/joint-0")
    assert distil.near is None
    assert distil.train == "+".join(name.replace("_", ":") for name in TAUGHT)


def test_an_old_torch_cannot_compile_and_what_has_no_encoder_is_said_first(monkeypatch):
    monkeypatch.setattr(recipe_module, "version", lambda name: "2.6.0+cpu")
    with pytest.raises(ValueError, match=r"^compile needs torch 2\.7 or newer; got 2\.6\.0\+cpu$"):
        ClassifierRecipe(compile=True)
    with pytest.raises(ValueError, match=r"^compile is for an encoder"):
        ClassifierRecipe(baseline="dam", compile=True)
    monkeypatch.setattr(recipe_module, "version", lambda name: "2.10.1")
    assert ClassifierRecipe(compile=True).compile
