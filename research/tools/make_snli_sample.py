"""Make src/spinformer/data/snli/{train,dev,test}.jsonl.gz: pairs of SNLI, drawn with a fixed seed, classes balanced.

Takes the folder with snli_train.jsonl.gz, snli_dev.jsonl.gz and snli_test.jsonl.gz (premise, hypothesis, label).
The same input gives the same files, byte for byte, with the same version of zlib.
"""

import argparse
import gzip
import json
import random
from pathlib import Path

from research.paths import ROOT
from spinformer.data.files import read_texts
from spinformer.data.texts import NLI_LABELS

COUNTS = {"train": 2000, "dev": 500, "test": 500}


def draw(path: Path, count: int, seed: int) -> list[dict[str, str]]:
    """Draw `count` different pairs in random order, with classes as balanced as possible."""
    texts = read_texts(path, names=NLI_LABELS)
    assert texts.second is not None
    assert texts.labels is not None
    pairs = dict.fromkeys(zip(texts.first, texts.second, texts.labels, strict=True))
    generator = random.Random(seed)
    chosen = []
    for label in range(len(NLI_LABELS)):
        share = count // len(NLI_LABELS) + (label < count % len(NLI_LABELS))
        chosen += generator.sample([pair for pair in pairs if pair[2] == label], share)
    generator.shuffle(chosen)
    return [{"premise": p, "hypothesis": h, "label": NLI_LABELS[label]} for p, h, label in chosen]


def main() -> None:
    """Draw and write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="SOURCE_DIR", help="folder of snli_{train,dev,test}.jsonl.gz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ROOT / "src" / "spinformer" / "data" / "snli")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    for split, count in COUNTS.items():
        rows = draw(args.source / f"snli_{split}.jsonl.gz", count, args.seed)
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path = args.output / f"{split}.jsonl.gz"
        path.write_bytes(gzip.compress(content.encode(), compresslevel=9, mtime=0))
        print(f"{path}: {len(rows)} pairs, {path.stat().st_size / 1e3:.1f} kB")


if __name__ == "__main__":
    main()
