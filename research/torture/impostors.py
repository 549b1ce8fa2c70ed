"""Tables, pictures and recipes that are not what they seem, and model folders that bring code with them."""

import json
import pickle
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from research.torture.damage import CODE, WITNESS, Damage, Malice


def _table(change: Callable[[Any, random.Random], Any]) -> Damage:
    """Damage to a Parquet file through pyarrow."""

    def damage(path: Path, draw: random.Random) -> None:
        from pyarrow import parquet

        parquet.write_table(change(parquet.read_table(path), draw), path)

    return damage


def _odd_column(table: Any, draw: random.Random) -> Any:
    import pyarrow

    place, count = draw.randrange(table.num_columns), table.num_rows
    cells = draw.choice(
        (
            [None] * count,
            [float("nan")] * count,
            [b"\xff\xfe"] * count,
            [{"bytes": b"x", "path": 1}] * count,
            [[1]] * count,
            [2**62] * count,
            [""] * count,
            ["\x00\x1b[31m"] * count,
            [True] * count,
        )
    )
    return table.set_column(place, table.column_names[place], pyarrow.array(cells))


def _no_text(table: Any, draw: random.Random) -> Any:
    """A column of strings that are not UTF-8, which Parquet does not look at."""
    import pyarrow

    raw = pyarrow.array([b"\xff\xc3\x28"] * table.num_rows, pyarrow.binary())
    return table.set_column(0, table.column_names[0], raw.view(pyarrow.string()))


def _table_bomb(path: Path, draw: random.Random) -> None:
    """The first row of a table thirty million times, in a few thousand bytes."""
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    one, places = parquet.read_table(path).slice(0, 1), pyarrow.array(np.zeros(30_000_000, np.int8))
    columns = [pyarrow.DictionaryArray.from_arrays(places, column.combine_chunks()) for column in one.columns]
    parquet.write_table(pyarrow.table(columns, one.column_names), path, compression="zstd")


TABLE: dict[str, Damage] = {
    "odd column": _table(_odd_column),
    "another odd column": _table(_odd_column),
    "not UTF-8": _table(_no_text),
    "no rows": _table(lambda table, draw: table.slice(0, 0)),
    "a column lost": _table(lambda table, draw: table.drop_columns([table.column_names[0]])),
    "a column twice": _table(lambda table, draw: table.append_column(table.column_names[0], table.column(0))),
}
ROWS_BOMB: dict[str, Damage] = {"bomb": _table_bomb}


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _png(width: int, height: int, rows: int) -> bytes:
    """A black PNG of these sizes, whose data are of so many rows."""
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(1 + width)) for _ in range(rows)) + packer.flush()
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _picture(*choices: Callable[[], bytes]) -> Damage:
    return lambda path, draw: _write(path, draw.choice(choices)())


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


PICTURE: dict[str, Damage] = {
    "bomb": _picture(lambda: _png(12_000, 12_000, 12_000), lambda: _png(9_000, 9_000, 9_000)),
    "lying sizes": _picture(lambda: _png(9_000, 9_000, 2), lambda: _png(8, 8, 1)),
    "another size": _picture(lambda: _png(9, 8, 8), lambda: _png(1, 1, 1)),
    "no pixels": _picture(lambda: _png(0, 8, 8), lambda: _png(8, 0, 0)),
}


def _idx(path: Path, draw: random.Random) -> None:
    """A header that promises something else than follows."""
    content = path.read_bytes()
    shapes = ((2**32 - 1,) * 3, (0, 8, 8), (40, 8, 9), (40 * 64,), (1,) * 40, (40, 0, 8), (2**31, 2**31, 2**2))
    shape = draw.choice(shapes)
    path.write_bytes(b"\x00\x00\x08" + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + content[16:])


def _idx_type(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[2] = draw.choice((0, 9, 13, 14, 255))
    path.write_bytes(content)


IDX: dict[str, Damage] = {"lying sizes": _idx, "more lying sizes": _idx, "another type": _idx_type}


def _recipe(text: str) -> Damage:
    return lambda path, draw: _write(path, text.encode())


LAUGHS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 9)]
    + ["names: *a8", "epochs: *a8"]
)
YAML: dict[str, Damage] = {
    "a Python object": _recipe(f"epochs: !!python/object/apply:os.system ['touch {WITNESS}']\n"),
    "new Python object": _recipe(
        'epochs: !!python/object/new:type\n  args: ["z", !!python/tuple [], {"extend": "x"}]\n'
    ),
    "laughs": _recipe(LAUGHS),
    "few laughs": _recipe(
        LAUGHS.replace("names: *a8\nepochs: *a8", "names: *a8").replace("a0:", "game: &g {a: 1}\na0:", 1)
    ),
    "a circle": _recipe("epochs: &a [*a]\n"),
    "a circle of keys": _recipe("game: &a {a: *a}\n"),
    "its own base": _recipe("base: recipe.yaml\n"),
    "a base elsewhere": _recipe("base: /dev/zero\n"),
    "deep nesting": _recipe("epochs: " + "[" * 5000 + "]" * 5000),
    "odd numbers": _recipe("epochs: .nan\nlearning_rate: .inf\n"),
    "long numbers": _recipe("epochs: " + "9" * 5000 + "\n"),
    "a time": _recipe("epochs: 2001-12-14t21:59:43.10-05:00\nencoder: 2001-12-14\n"),
    "a set": _recipe("names: !!set {a, b}\nencoder: !!binary aGFsbG8=\n"),
    "keys that are none": _recipe("? [a, b]\n: 1\n7: 8\nnull: 1\n"),
    "a negative number": _recipe("batch_size: -16\nwarmup: -1\n"),
    "two documents": _recipe("epochs: 1\n---\nepochs: 2\n"),
}


def _change(path: Path, **options: Any) -> None:
    """Options of a JSON file are changed."""
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**content, **options}))


def _own(path: Path, draw: random.Random) -> None:
    """config.json names classes in a Python file beside it."""
    (path.parent / "own.py").write_text(f"{CODE}\nclass Own: pass\n")
    names = ("AutoConfig", "AutoModel", "AutoModelForSequenceClassification", "AutoTokenizer")
    chosen = draw.sample(names, draw.randint(1, len(names)))
    _change(path, auto_map=dict.fromkeys(chosen, "own.Own"), **draw.choice(({}, {"model_type": "own"})))


def _own_tokenizer(path: Path, draw: random.Random) -> None:
    (path.parent / "own.py").write_text(f"{CODE}\nclass Own: pass\n")
    file = path.with_name("tokenizer_config.json")
    _change(file, auto_map={"AutoTokenizer": ["own.Own", "own.Own"]}, tokenizer_class=draw.choice(("Own", "OwnFast")))


def _kernel(path: Path, draw: random.Random) -> None:
    names = ("attn_implementation", "_attn_implementation", "experts_implementation")
    _change(path, **{draw.choice(names): draw.choice(("someone/kernel", "someone/kernel:own", "paged|someone/kernel"))})


def _old_weights(path: Path, draw: random.Random) -> None:
    """Weights as a pickle instead of safetensors."""
    import torch

    path.with_name("model.safetensors").unlink()
    for name in ("pytorch_model.bin", "training_args.bin", "model.bin"):
        torch.save({"a": Malice()}, path.with_name(name))
    if draw.random() < 0.5:
        path.with_name("pytorch_model.bin").write_bytes(pickle.dumps(Malice(), protocol=2))


def _template(path: Path, draw: random.Random) -> None:
    """A template that would look for Python's own objects."""
    text = "{{ cycler.__init__.__globals__.os.popen('touch " + WITNESS + "').read() }}"
    _change(path.with_name("tokenizer_config.json"), chat_template=text)
    path.with_name("chat_template.jinja").write_text(text)


def _modules(path: Path, draw: random.Random) -> None:
    """Python files with the names of modules that are imported."""
    for name in ("json", "torch", "tokenizers", "configuration_bert", "modeling_bert", "__init__", "sitecustomize"):
        path.with_name(f"{name}.py").write_text(CODE)


def _elsewhere(path: Path, draw: random.Random) -> None:
    """A model that says its weights are an adapter, quantised, or another model's."""
    odd: tuple[dict[str, Any], ...] = (
        {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
        {"quantization_config": {"quant_method": "own"}},
        {"_name_or_path": "/dev/zero", "transformers_version": "99.0"},
        {"dtype": "float8_e4m3fn"},
        {"dtype": "own.Own"},
        {"torch_dtype": "int64"},
        {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"},
        {"is_encoder_decoder": True, "tie_word_embeddings": True},
    )
    _change(path, **draw.choice(odd))


def _adapter(path: Path, draw: random.Random) -> None:
    _change(path.with_name("adapter_config.json"), base_model_name_or_path="someone/base", peft_type="LORA")


CODES: dict[str, Damage] = {
    "code of its own": _own,
    "more code of its own": _own,
    "a tokenizer of its own": _own_tokenizer,
    "compiled code": _kernel,
    "pickled weights": _old_weights,
    "a template": _template,
    "modules": _modules,
    "another method": _elsewhere,
    "one more method": _elsewhere,
    "an adapter": _adapter,
}
