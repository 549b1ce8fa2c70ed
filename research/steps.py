"""Every result of research/results, in the order in which they can be made: the command of each, and what it needs.

`spinformer reproduce all` runs these, and docs/reproduction.md shows them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKPOINT = "checkpoints/neurogame-minilm-nli"
DEFAULTS = (
    "runs/nli",
    "runs/grounding",
    "runs/attractor",
    "runs/architectures",
    "runs/small",
    "runs/tasks",
    "runs/corpus",
)  # where the commands keep models unless told otherwise
MARKS = ("{data}", "{runs}", "{checkpoint}", "{minilm}")
# What a user must name, and how it is written where it is not known: key -> (flag, placeholder).
INPUTS: Mapping[str, tuple[str, str]] = {
    "data": ("--data", "CORPORA"),
    "minilm": ("--encoder", "minilm=FOLDER"),
    "mpnet": ("--encoder", "mpnet=FOLDER"),
    "vectors": ("--vectors", "FILE"),
    "images": ("--images", "MNIST"),
}


@dataclass(frozen=True)
class Step:
    """One result. name: of its file; words: the command, in which the words in braces stand for folders (MARKS);
    options: keys of INPUTS that the command takes as they are; folder: where in {runs} models are kept; makes, uses:
    models in {runs} that a later step needs, and that this one does; gpu: whether it takes days without a GPU; extra:
    whether it is run only when it is named or another needs its models; removed: why it cannot be made again.
    """

    name: str
    words: tuple[str, ...]
    options: tuple[str, ...] = ()
    folder: str = ""
    makes: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    gpu: bool = False
    extra: bool = False
    removed: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Keys of INPUTS that the step needs, those inside of its words too."""
        inside = [key for key in ("data", "minilm") if any(f"{{{key}}}" in word for word in self.words)]
        return tuple(dict.fromkeys([*self.options, *inside]))

    @property
    def short(self) -> str:
        """The command without options that name files: what tells it from the others."""
        kept: list[str] = []
        for word in self.words:
            if not any(mark in word for mark in MARKS):
                kept.append(f"'{word}'" if "{" in word else word)
            elif kept[-1].startswith("--"):
                kept.pop()
        return " ".join(["spinformer", *kept])

    def command(self, inputs: Mapping[str, str], runs: str = "runs", checkpoint: str = CHECKPOINT) -> list[str]:
        """The words of the command line after `spinformer`, with placeholders for what `inputs` does not name."""
        given = {key: placeholder.rpartition("=")[2] for key, (_, placeholder) in INPUTS.items()} | dict(inputs)
        words = [*self.words]
        for mark, folder in zip(MARKS, (given["data"], runs, checkpoint, given["minilm"]), strict=True):
            words = [word.replace(mark, folder) for word in words]
        for key in self.options:
            flag, placeholder = INPUTS[key]
            prefix, mark, _ = placeholder.rpartition("=")
            words += [flag, f"{prefix}{mark}{given[key]}"]
        models = f"{runs}/{self.folder}"
        if self.folder and models not in DEFAULTS:
            words += ["--output" if self.words[1] == "attractor" else "--runs", models]
        return words

    def missing_models(self, runs: Path) -> list[str]:
        """Models that the step uses and that are not there."""
        return [name for name in self.uses if not (runs / name).exists()]


def _bench(name: str) -> Step:
    return Step(name, ("bench", name))


def _nli(
    stage: str,
    *more: str,
    name: str = "",
    options: tuple[str, ...] = ("data", "minilm"),
    uses: tuple[str, ...] = (),
    makes: tuple[str, ...] = (),
    extra: bool = False,
) -> Step:
    words = ("reproduce", "nli", "--stage", stage, *more, *(("--name", name) if name else ()))
    return Step(name or f"nli-{stage}", words, options, name or "nli", makes, uses, gpu=True, extra=extra)


def _grounding(
    stage: str,
    models: Sequence[str],
    *more: str,
    name: str = "",
    texts: str = "snli_train mnli_train",
    test: str = "snli_test",
    folder: str = "grounding",
) -> Step:
    """texts: files to ground on, none for a stage that needs none; test: the file to measure on."""
    words = ["reproduce", "grounding", "--stage", stage, "--model", *models]
    words += ["--texts", "+".join(f"{{data}}/{file}.jsonl.gz" for file in texts.split())] if texts else []
    words += ["--test", f"{{data}}/{test}.jsonl.gz", *more, *(("--name", name) if name else ())]
    uses = tuple(model.removeprefix("{runs}/") for model in models if model.startswith("{runs}/"))
    return Step(name or f"grounding-{stage}", tuple(words), folder=folder, uses=uses, gpu=True)


def _enough(model: str, device: str = "") -> Step:
    """Games of ever more texts; device: "cpu" for fewer of them, on a CPU."""
    task = model.rpartition("/")[2]
    files = {"texts": f"{task}_train", "test": "sst2_dev" if task == "sst2" else f"{task}_test"}
    single = () if task == "snli" else ("--first", "text")
    limits = ("500", "2000") if device else ("500", "2000", "8000")
    limits = ("--limit", "8000" if device else "32000", "--limits", *limits, "--count", "30")
    more = (*single, *limits, *(("--device", device) if device else ()))
    folder = f"enough-{device}" if device else "enough"
    return _grounding("enough", _in_runs((model,)), *more, name=f"{folder}-{task}", folder=folder, **files)


def _attractor(name: str, stage: str, *more: str) -> Step:
    words = ("reproduce", "attractor", "--stage", stage, *more)
    return Step(name, words, ("images",), "attractor", gpu=stage != "pixels" and "cpu" not in more)


def _in_runs(models: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{{runs}}/{model}" for model in models)


OWN = ("{checkpoint}",)
TEACHER = ("nli/teacher/teacher-0",)
JOINT = tuple(f"nli/distil/joint-{seed}" for seed in range(3))
TAUGHT = tuple(f"nli/taught/grounded-{seed}" for seed in range(3))
GROUNDED = tuple(f"nli/heads/grounded-{seed}" for seed in range(2))
APART = ("nli/apart/neurogame-0",)
SINGLE = ("nli/single/hypothesis-0",)
BOTH = ("data", "minilm", "mpnet")
MARKED = ("--highlights", "{data}/esnli_highlights.jsonl.gz")
CLOSE = ("--epochs", "3", "--subsets", "8")
CLOSER = ("--epochs", "4", "--subsets", "8")
SST2 = ("sst2/minilm-sst2",)
SST2_TRAINING = (
    *("train", "nli", "--encoder", "{minilm}", "--head", "cls", "--output", "{runs}/sst2/minilm-sst2"),
    *("--train", "{data}/sst2_train.jsonl.gz", "--dev", "{data}/sst2_dev.jsonl.gz"),
    *("--first", "text", "--label", "label", "--names", "negative", "positive"),
    *("--epochs", "3", "--batch-size", "256", "--learning-rate", "2e-4"),
)
TASKS = ("tasks/sst2", "tasks/goemotions", "tasks/snli")
ONE, HALF = ("--seeds", "1"), ("--count", "500", "--bf16")
OLD_CODE = "the code for it was removed; commit 91dd5b7 is the last that has it"

STEPS: tuple[Step, ...] = (
    *map(_bench, ("equations", "theory", "example", "exact", "coverage", "ess", "proposals")),
    *map(_bench, ("efficiency", "presets", "targets")),
    *map(_bench, ("speed", "linear", "crossover", "explain", "long", "versus", "gradients", "app")),
    Step("attention-gpu", ("bench", "attention"), gpu=True),
    Step("attention-cpu", ("bench", "attention")),
    Step("torture", ("torture",), extra=True),
    _nli("tune"),
    _nli("base", options=(*BOTH, "vectors")),
    _nli("heads", "--seeds", "0", "1", "2", "3", "4", "5", makes=GROUNDED),
    _nli("heads", "--only", "grounded", "--change", '{"whole": 0.25}', name="nli-grounded-quarter"),
    _nli("heads", "--only", "grounded", "--change", '{"masked_weight": 0.1}', name="nli-together"),
    Step("nli-gate", (), removed=OLD_CODE),
    _nli("teacher", options=BOTH, makes=TEACHER),
    _nli("pilot", uses=TEACHER),
    _nli("distil", uses=TEACHER, makes=JOINT),
    _nli("apart", uses=JOINT, makes=APART),
    _nli("taught", "--only", "grounded", uses=(*TEACHER, *JOINT), makes=TAUGHT),
    _nli("single", makes=SINGLE, extra=True),
    _nli("paper", options=BOTH),
    _nli("ablations"),
    _nli("literal", "--seeds", "2"),
    Step("nli-small", ("reproduce", "small"), ("data",), "small", gpu=True),
    _grounding("frozen", OWN),
    _grounding("methods", OWN, *MARKED),
    _grounding("together", OWN, *MARKED, name="grounding-checkpoint", texts=""),
    _grounding("ess", OWN),
    _grounding("pooling", OWN, "--limit", "20000", *MARKED, folder="grounding-pooling"),
    _grounding("frozen", OWN, *ONE, "--batch-size", "256", "--count", "200", name="grounding-time", folder="time"),
    _grounding("frozen", _in_runs(APART), name="grounding-frozen-taught"),
    _grounding("methods", _in_runs(APART), name="grounding-methods-taught"),
    _grounding("together", _in_runs(TAUGHT), texts=""),
    _grounding("together", _in_runs(GROUNDED), *HALF, name="grounding-together-half", texts=""),
    _grounding("frozen", _in_runs(SINGLE), "--first", "hypothesis", *ONE, *HALF, name="grounding-single"),
    Step("grounding-forms", (), removed=OLD_CODE),
    _grounding("exact", OWN, *CLOSE, name="exactness-snli", folder="exactness"),
    _grounding("peers", OWN, *CLOSE, name="exactness-snli-peers", texts="", folder="exactness"),
    _grounding("exact", OWN, name="exactness-checkpoint", texts="", folder="exactness"),
    _grounding("exact", OWN, name="exactness-mnli", texts="", test="mnli_dev_matched", folder="exactness"),
    _grounding("exact", OWN, name="exactness-sick", texts="", test="sick_test", folder="exactness"),
    Step("sst2", SST2_TRAINING, makes=SST2, gpu=True, extra=True),
    _grounding(
        "exact",
        _in_runs(SST2),
        *("--first", "text", "--splices", "90000", *CLOSER),
        name="exactness-sst2",
        texts="sst2_train goemotions_train imdb_train",
        test="sst2_dev",
        folder="exactness-sst2",
    ),
    _grounding(
        "peers",
        _in_runs(SST2),
        *("--first", "text", *CLOSER),
        name="exactness-sst2-peers",
        texts="",
        test="sst2_dev",
        folder="exactness-sst2",
    ),
    Step("tasks", ("reproduce", "tasks", "--bf16"), ("data", "minilm"), "tasks", makes=TASKS, gpu=True),
    Step(
        "tasks-cpu",
        ("reproduce", "tasks", "--only", "stsb", "--limit", "12000", "--device", "cpu", "--name", "tasks-cpu"),
        ("data", "minilm"),
        "tasks-cpu",
    ),
    *map(_enough, TASKS),
    *(_enough(model, "cpu") for model in TASKS),
    Step(
        "architectures",
        (
            *("reproduce", "architectures", "--train", "{data}/sst2_train.jsonl.gz"),
            *("--test", "{data}/sst2_dev.jsonl.gz", "--teacher", "{runs}/tasks/sst2", "--splices", "60000"),
            *("--more", "{data}/goemotions_train.jsonl.gz", "{data}/imdb_train.jsonl.gz"),
        ),
        ("vectors",),
        folder="architectures",
        uses=TASKS[:1],
        gpu=True,
    ),
    Step(
        "corpus-gpu",
        (
            *("reproduce", "corpus", "--model", "{runs}/tasks/sst2", "--game", "{runs}/tasks/sst2-game"),
            *("--texts", "{data}/sst2_train.jsonl.gz", "{data}/goemotions_train.jsonl.gz", "--processes", "12"),
        ),
        folder="corpus",
        uses=TASKS[:1],
        gpu=True,
    ),
    Step("negation", ("reproduce", "negation", "--model", "{checkpoint}", "--monli", "{data}/monli.jsonl.gz")),
    _attractor("attractor", "compute"),
    _attractor("attractor-use", "use"),
    _attractor("attractor-sweep", "sweep"),
    _attractor("attractor-strengths", "strengths"),
    _attractor("attractor-pixels", "pixels"),
    _attractor("attractor-speed-gpu", "speed", "--device", "cuda"),
    _attractor("attractor-speed-cpu", "speed", "--device", "cpu"),
)
BY_NAME: Mapping[str, Step] = {step.name: step for step in STEPS}
