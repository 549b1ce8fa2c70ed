"""The formats that the library reads: a good file of each, the command that reads it, and what may happen to it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from research.torture import house
from research.torture.damage import ANY, JSON, TEXT, Damage
from research.torture.forgery import ARRAYS, STATE, TENSORS, gzipped
from research.torture.forks import command
from research.torture.impostors import CODES, IDX, PICTURE, ROWS_BOMB, TABLE, YAML

PREDICT = "predict plain {} --device cpu --output answers.jsonl"
EVALUATE = "evaluate plain {} --device cpu --name scores --results results"
CLASSIFY = "predict {} data/dev.jsonl --device cpu --output answers.jsonl"
EXPLAIN = "explain {} --file data/dev.jsonl --limit 2 --device cpu --output explained"
HIGHLIGHTS = (
    "evaluate plain data/dev.jsonl --explanations --count 2 --passes 16 --methods random --seeds 0 --device cpu"
    " --output found.json --highlights data/highlights.jsonl"
)
NETWORK = "retrieve network/net.safetensors --images images/images.npz --count 2 --output retrieved"
IMAGES = f"{house.ATTRACTOR.replace('--epochs 3', '--epochs 1')} --output new/net.safetensors".replace(
    "images/images.npz", "{}"
)
TAUGHT = f"{house.NLI} --head mean --teacher teacher --save-steps 0 --epochs 1 --output new"


@dataclass(frozen=True)
class Format:
    """name: for people; path: the file, in a part of the house, as a pattern; parts: what the command needs; action:
    what reads it; damages: what may be done to it, by name; stays: how the paths of files begin that the command may
    leave where it fails; seal: called after the damage.
    """

    name: str
    path: str
    parts: tuple[str, ...]
    action: Callable[[], int]
    damages: dict[str, Damage]
    stays: tuple[str, ...] = ()
    seal: Callable[[Path], None] | None = None


def _words(words: str, path: str = "") -> Callable[[], int]:
    return command(*words.replace("{}", path).split())


def _read_explanation() -> int:
    """Read a saved explanation, and make of it whatever can be house."""
    from spinformer.cli.failures import explain_failure
    from spinformer.explain import Explanation

    try:
        explanation = Explanation.load("explained/0001.json")
        explanation.save("again.json")
        explanation.to_html("again.html")
        print(explanation, explanation.top_words(3), explanation.top_pairs(3), explanation.importance_interval)
    except Exception as error:
        return explain_failure("read", error)
    return 0


def _read_record() -> int:
    """Read the record of a result, and measure it again where it is of another configuration."""
    from spinformer._base import records
    from spinformer.cli.failures import explain_failure

    folder = Path("results")
    try:
        record = records.read("scores", folder)
        print(record["outcome"].keys(), record["config"].keys())
        records.once("scores", lambda: {"a": 1.0}, command="x", config={"a": 1}, directory=folder)
    except Exception as error:
        return explain_failure("read", error)
    return 0


def _seal(path: Path) -> None:
    """Say of a checkpoint that it is complete with the damaged file."""
    from spinformer.training.classifier.checkpoints import mark_complete

    if path.is_file():
        mark_complete(path.parent, 1.0)


def _model(name: str, part: str, file: str, damages: dict[str, Damage], words: str = CLASSIFY) -> Format:
    return Format(name, f"{part}/{file}", (part, "data"), _words(words, part), damages)


def _corpus(file: str, damages: dict[str, Damage], words: str = PREDICT) -> Format:
    name = f"{file} to {words.split()[0]}"
    return Format(name, f"data/{file}", ("plain", "data"), _words(words, f"data/{file}"), damages)


def _training(name: str, file: str, damages: dict[str, Damage], *, sealed: bool = False) -> Format:
    """A file of a training that is resumed."""
    action = _words(f"{house.NLI} --game {house.LAYER} --output run --resume")
    parts, stays = ("encoder", "data", "run"), ("run/checkpoint-", "run/runs", "run/recipe.json", "run/data.json")
    return Format(name, f"run/{file}", parts, action, damages, stays, _seal if sealed else None)


def _image(name: str, path: str, damages: dict[str, Damage]) -> Format:
    source = path if path.endswith(".npz") else str(Path(path).parent)
    return Format(name, path, ("images",), _words(IMAGES, source), damages, ("new/.net",))


LINES, TENSOR_FILE, STATES = {**ANY, **TEXT, **JSON}, {**ANY, **TENSORS}, {**ANY, **STATE}
SEPARATED, TABLES = {**ANY, **TEXT}, {**ANY, **TABLE}
LAST = "checkpoint-8"


def all_formats() -> list[Format]:
    """Every format."""
    train = ("encoder", "data")
    return [
        _model("config.json", "plain", "config.json", LINES),
        _model("model.safetensors", "plain", "model.safetensors", TENSOR_FILE),
        _model("tokenizer.json", "plain", "tokenizer.json", LINES),
        _model("tokenizer_config.json", "plain", "tokenizer_config.json", LINES),
        _model("code in a model", "plain", "config.json", CODES),
        _model("config.json, NeuroGame", "own", "config.json", LINES),
        _model("model.safetensors, NeuroGame", "own", "model.safetensors", TENSOR_FILE),
        _model("config.json, words", "words", "config.json", LINES),
        _model("index of shards", "sharded", "model.safetensors.index.json", LINES),
        _model("a shard", "sharded", "model-00002-of-00005.safetensors", TENSOR_FILE),
        _model("game.json", "model", "game/game.json", LINES, EXPLAIN),
        _model("game.safetensors", "model", "game/game.safetensors", TENSOR_FILE, EXPLAIN),
        _model("misfit.json", "model", "game/misfit.json", LINES, EXPLAIN),
        *(
            Format(
                file,
                f"additive/{file}",
                ("plain", "data", "additive"),
                _words(EXPLAIN + " --additive additive --method additive-explainer", "plain"),
                damages,
            )
            for file, damages in (("explainer.json", LINES), ("explainer.safetensors", TENSOR_FILE))
        ),
        Format("attractor network", "network/net.safetensors", ("network", "images"), _words(NETWORK), TENSOR_FILE),
        Format(
            "attractor .state",
            "network/net.state",
            ("network", "images"),
            _words(f"{house.ATTRACTOR} --output network/net.safetensors"),
            STATES,
        ),
        Format(
            "state.pt of ground",
            "learnt/game/state.pt",
            ("plain", "data", "learnt"),
            _words(f"{house.GROUND} --output learnt --resume"),
            STATES,
        ),
        Format(
            "run.json of ground",
            "model/game/run.json",
            ("model", "data"),
            _words(f"{house.GROUND.replace('plain', 'model')} --resume"),
            LINES,
            ("model/game/state.pt",),
        ),
        _training("recipe.json", "recipe.json", LINES),
        _training("data.json", "data.json", LINES),
        _training("complete", f"{LAST}/complete", SEPARATED),
        _training("checkpoint, damaged", f"{LAST}/optimizer.pt", STATES),
        *(
            _training(f"{file}, sealed", f"{LAST}/{file}", damages, sealed=True)
            for file, damages in (
                ("optimizer.pt", STATES),
                ("scheduler.pt", STATES),
                ("rng_state.pth", STATES),
                ("training_args.bin", {**ANY, "malice": STATE["malice alone"]}),
                ("trainer_state.json", LINES),
                ("average.safetensors", TENSOR_FILE),
                ("model.safetensors", TENSOR_FILE),
            )
        ),
        Format(
            "encoder", "encoder/model.safetensors", train, _words(f"{house.NLI} --output new"), TENSOR_FILE, ("new/",)
        ),
        Format(
            "recipe.yaml",
            "data/recipe.yaml",
            train,
            _words(f"{house.NLI.replace('--epochs 2', '')} --config data/recipe.yaml --output new"),
            {**ANY, **TEXT, **YAML},
            ("new/runs",),
        ),
        Format("lesson", "teacher/lesson-*.safetensors", (*train, "teacher"), _words(TAUGHT), TENSOR_FILE, ("new/",)),
        *(
            Format(
                file,
                f"data/{file}",
                ("data",),
                _words(f"{house.WORD_VECTORS.replace('vectors.txt', file)} --save-steps 0 --epochs 1 --output new"),
                damages,
                ("new/",),
            )
            for file, damages in (("vectors.txt", SEPARATED), ("vectors.txt.gz", {**ANY, **gzipped(TEXT)}))
        ),
        _corpus("rows.jsonl", LINES),
        _corpus("rows.jsonl.gz", {**ANY, **gzipped({**TEXT, **JSON})}),
        _corpus("rows.txt", SEPARATED),
        _corpus("rows.jsonl", LINES, EVALUATE),
        _corpus("rows.csv", SEPARATED, EVALUATE),
        _corpus("rows.tsv", SEPARATED, EVALUATE),
        _corpus("rows.csv.gz", {**ANY, **gzipped(TEXT)}, EVALUATE),
        _corpus("rows.parquet", {**TABLES, **ROWS_BOMB}, EVALUATE),
        Format("highlights", "data/highlights.jsonl", ("plain", "data"), _words(HIGHLIGHTS), LINES),
        Format(
            "exact tables",
            "tables.safetensors",
            ("plain", "data", "tables.safetensors"),
            _words(house.TABLES),
            TENSOR_FILE,
        ),
        Format("saved explanation", "explained/0001.json", ("explained",), _read_explanation, LINES),
        Format("result record", "results/scores.json", ("results",), _read_record, LINES),
        _image("images.npz", "images/images.npz", {**ANY, **ARRAYS}),
        _image("keras.npz", "images/keras.npz", {**ANY, **ARRAYS}),
        _image("idx", "images/idx/train-images-idx3-ubyte", {**ANY, **IDX}),
        _image("idx, zipped", "images/zipped/train-images-idx3-ubyte.gz", {**ANY, **gzipped(IDX)}),
        _image("pictures", "images/pictures/03.png", {**ANY, **PICTURE}),
        _image("pictures in Parquet", "images/frames/train.parquet", TABLES),
    ]
