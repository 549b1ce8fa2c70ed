"""Make src/spinformer/data/snli/{train,dev,test}.jsonl.gz: pairs of SNLI, drawn with a fixed seed, classes balanced.

Takes the folder with snli_train.jsonl.gz, snli_dev.jsonl.gz and snli_test.jsonl.gz (premise, hypothesis, label).
"""

import argparse
from pathlib import Path

from research.paths import ROOT
from research.tools.samples import Row, draw_balanced, write_sample
from spinformer.data.files import read_texts
from spinformer.data.texts import NLI_LABELS

COUNTS = {"train": 2000, "dev": 500, "test": 500}


def read(path: Path) -> list[Row]:
    """The pairs of a file, each once."""
    texts = read_texts(path, names=NLI_LABELS)
    assert texts.second is not None
    assert texts.labels is not None
    pairs = dict.fromkeys(zip(texts.first, texts.second, texts.labels, strict=True))
    return [{"premise": first, "hypothesis": second, "label": NLI_LABELS[label]} for first, second, label in pairs]


def main() -> None:
    """Draw and write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="SOURCE_DIR", help="folder of snli_{train,dev,test}.jsonl.gz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ROOT / "src" / "spinformer" / "data" / "snli")
    args = parser.parse_args()
    for split, count in COUNTS.items():
        rows = draw_balanced(read(args.source / f"snli_{split}.jsonl.gz"), NLI_LABELS, count, args.seed)
        print(write_sample(rows, args.output / f"{split}.jsonl.gz"))


if __name__ == "__main__":
    main()
