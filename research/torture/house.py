"""Small good files of every format that the library reads, made by the library itself; parts are made when needed."""

import csv
import gzip
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from research.torture.forks import command, run_child

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = ["a", "the", "man", "woman", "dog", "cat", "runs", "sleeps", "eats", "outside", "inside", "two", "red", "not"]
LABELS = ("entailment", "neutral", "contradiction")
SIZES = "--heads 4 --dim 16 --hidden 32 --readout 16 --batch-size 8 --device cpu"
NLI = (
    "train nli --encoder encoder --train data/rows.jsonl --dev data/dev.jsonl --batch-size 16 --epochs 2 --save-steps 2"
    " --log-steps 2 --ema 0.9 --quiet"
)
WORD_VECTORS = NLI.replace("--encoder encoder", "--baseline dam --vectors data/vectors.txt")
GROUND = f"ground plain data/rows.jsonl --held-out 8 --epochs 2 --save-steps 2 {SIZES}"
ATTRACTOR = "train attractor --images images/images.npz --patch 4 --epochs 3 --batch 10 --device cpu"


LAYER, HEAD = '{"heads":2}', '{"heads":2,"dim":16,"hidden":16,"readout":16}'


class House:
    """A folder with parts, each a file or a folder by its name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def need(self, *names: str) -> None:
        """Make the parts that are not there yet, after those that they are made of."""
        for name in names:
            if (self.folder / name).exists():
                continue
            needs, make = PARTS[name]
            self.need(*needs)
            ended = run_child(make, self.folder, limit=240)
            if ended.status != 0 or not (self.folder / name).exists():
                raise RuntimeError(f"{name} could not be made: {ended.err[-400:]}")

    def copy(self, folder: Path, *names: str) -> None:
        """The parts of these names in another folder."""
        self.need(*names)
        for name in names:
            part = self.folder / name
            (shutil.copytree if part.is_dir() else shutil.copyfile)(part, folder / name)


def tokenizer() -> Any:
    """A tokenizer of WORDS: [CLS] a [SEP] b [SEP]."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    places = {word: place for place, word in enumerate([*SPECIAL, *WORDS])}
    own = Tokenizer(models.WordLevel(places, unk_token="[UNK]"))
    own.normalizer, own.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    own.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=own, model_max_length=128, **names)


def rows(count: int, seed: int = 0) -> list[dict[str, str]]:
    """Pairs whose class can be learnt: the second text says "not", or "red", or neither."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        place = draw.randrange(3)
        first, second = (" ".join(draw.choices(WORDS[:-2], k=draw.randint(2, 6))) for _ in range(2))
        pairs.append({"premise": first, "hypothesis": f"{second}{('', ' red', ' not')[place]}", "label": LABELS[place]})
    return pairs


def _make_data() -> int:
    import pyarrow
    from pyarrow import parquet

    folder, pairs = Path("data"), rows(64)
    folder.mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in pairs)
    (folder / "rows.jsonl").write_text(lines)
    (folder / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(16, 1)))
    for ending, separator in ((".csv", ","), (".tsv", "\t")):
        with (folder / f"rows{ending}").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["premise", "hypothesis", "label"], delimiter=separator)
            writer.writeheader()
            writer.writerows(pairs)
    (folder / "rows.txt").write_text("".join(f"{row['premise']}\t{row['hypothesis']}\n" for row in pairs))
    for name in ("rows.jsonl", "rows.csv"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    parquet.write_table(pyarrow.Table.from_pylist(pairs), folder / "rows.parquet")
    marked = [
        {
            **row,
            "annotations": [
                {f"{side}_marked": f"*{row[side].replace(' ', '* ', 1)}" for side in ("premise", "hypothesis")}
            ],
        }
        for row in pairs
    ]
    (folder / "highlights.jsonl").write_text("".join(json.dumps(row) + "\n" for row in marked))
    draw = random.Random(2)
    vectors = "".join(f"{word} {' '.join(f'{draw.gauss(0, 1):.4f}' for _ in range(8))}\n" for word in WORDS)
    (folder / "vectors.txt").write_text(vectors)
    (folder / "vectors.txt.gz").write_bytes(gzip.compress(vectors.encode()))
    (folder / "base.yaml").write_text("head: mean\nlearning_rate: 1e-3\n")
    (folder / "recipe.yaml").write_text("base: base.yaml\nepochs: 1\nbatch_size: 16\ngame: {heads: 2}\n")
    return 0


def _make_images() -> int:
    import io

    import numpy as np
    import pyarrow
    from PIL import Image
    from pyarrow import parquet

    pixels = (np.random.default_rng(0).random((60, 8, 8)) * 255).astype(np.uint8)
    parts = {"train": pixels[:40], "test": pixels[40:]}
    folders = {name: Path("images") / name for name in ("idx", "zipped", "pictures", "frames")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    np.savez_compressed("images/images.npz", train=parts["train"], test=parts["test"])
    np.savez("images/keras.npz", x_train=parts["train"], x_test=parts["test"])
    for part, name in (("train", "train-images-idx3-ubyte"), ("test", "t10k-images-idx3-ubyte")):
        content = b"\x00\x00\x08\x03" + np.array(parts[part].shape, ">u4").tobytes() + parts[part].tobytes()
        (folders["idx"] / name).write_bytes(content)
        (folders["zipped"] / f"{name}.gz").write_bytes(gzip.compress(content))
        encoded = []
        for image in parts[part]:
            buffer = io.BytesIO()
            Image.fromarray(image).save(buffer, "PNG")
            encoded.append({"image": {"bytes": buffer.getvalue(), "path": None}})
        parquet.write_table(pyarrow.Table.from_pylist(encoded), folders["frames"] / f"{part}.parquet")
    for place in range(12):
        Image.fromarray(pixels[place]).save(folders["pictures"] / f"{place:02d}.png")
    return 0


def _bert(**options: Any) -> Any:
    from transformers import BertConfig

    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    sizes |= {"vocab_size": len(SPECIAL) + len(WORDS), "max_position_embeddings": 128}
    return BertConfig(**sizes, initializer_range=0.3, **options)


def _make_encoder() -> int:
    import torch
    from transformers import AutoModel

    torch.manual_seed(0)
    for part in (AutoModel.from_config(_bert(), trust_remote_code=False), tokenizer()):
        part.save_pretrained("encoder")
    return 0


def _make_plain() -> int:
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(1)
    model = BertForSequenceClassification(_bert(num_labels=3, id2label=dict(enumerate(LABELS))))
    for part in (model, tokenizer()):
        part.save_pretrained("plain")
    model.save_pretrained("sharded", max_shard_size="6KB")
    tokenizer().save_pretrained("sharded")
    return 0


def _make_additive() -> int:
    from spinformer.data.sources import load_texts
    from spinformer.explain.methods.additive import AdditiveExplainer
    from spinformer.models.loading import load_classifier
    from spinformer.models.masked import MaskedClassifier

    explainer = AdditiveExplainer(MaskedClassifier(*load_classifier("plain", device="cpu"), "attention"), width=16)
    explainer.train(load_texts("data/rows.jsonl", labelled=False), passes=1000, quiet=True)
    explainer.save(Path("additive"))
    return 0


def _copied(words: str, source: str, target: str) -> Callable[[], int]:
    """The action: copy a part, then run a command that adds to the copy."""

    def action() -> int:
        shutil.copytree(source, target)
        return command(*words.split())()

    return action


def _make_learnt() -> int:
    """A game head whose learning was stopped after the last update, before anything was saved but checkpoints."""
    from spinformer.training import game

    def stop(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    vars(game)["measure_misfit"] = stop
    return 0 if command(*GROUND.split(), "--output", "learnt")() == 130 else 1


def _words(words: str) -> Callable[[], int]:
    return command(*words.split())


EXPLAIN = "explain plain --file data/dev.jsonl --limit 1 --passes 16 --device cpu --output"
TABLES = (
    "evaluate plain data/dev.jsonl --explanations --count 2 --passes 16 --methods random --seeds 0 --device cpu"
    " --exact 2 --exact-words 4 9 --exact-settings kernel-shap:16 --tables tables.safetensors"
)
# By its name: the parts that it is made of, and what makes it.
PARTS: dict[str, tuple[tuple[str, ...], Callable[[], int]]] = {
    "data": ((), _make_data),
    "images": ((), _make_images),
    "encoder": ((), _make_encoder),
    "plain": ((), _make_plain),
    "sharded": (("plain",), _make_plain),
    "model": (("plain", "data"), _copied(GROUND.replace("plain", "model"), "plain", "model")),
    "additive": (("plain", "data"), _make_additive),
    "learnt": (("plain", "data"), _make_learnt),
    "run": (("encoder", "data"), _words(f"{NLI} --game {LAYER} --output run")),
    "own": (
        ("encoder", "data"),
        _words(f"{NLI} --head grounded --objective grounded --grounding {HEAD} --save-steps 0 --output own"),
    ),
    "words": (("data",), _words(f"{WORD_VECTORS} --save-steps 0 --output words")),
    "teacher": (
        ("plain", "encoder", "data"),
        _copied(f"{NLI} --head mean --teacher teacher --output taught", "plain", "teacher"),
    ),
    "network": (("images",), _words(f"{ATTRACTOR} --output network/net.safetensors")),
    "explained": (("plain", "data"), _words(f"{EXPLAIN} explained")),
    "results": (
        ("plain", "data"),
        _words("evaluate plain data/dev.jsonl --device cpu --name scores --results results"),
    ),
    "tables.safetensors": (("plain", "data"), _words(TABLES)),
}
