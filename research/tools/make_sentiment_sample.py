"""Make src/spinformer/data/sentiment/{train,dev,test}.jsonl.gz: comments of GoEmotions, negative or positive.

Takes the folder with goemotions_train.jsonl.gz, goemotions_dev.jsonl.gz and goemotions_test.jsonl.gz (text, labels: a
list of emotions). A comment is positive if all of its emotions are, negative if all of its are, as the authors of
GoEmotions group them; others are left out. No text is in two of the files.
"""

import argparse
import gzip
import json
from pathlib import Path

from research.paths import ROOT
from research.tools.samples import Row, draw_balanced, write_sample

COUNTS = {"test": 1000, "dev": 500, "train": 4000}  # in the order in which texts are taken
EMOTIONS = {
    "negative": "anger annoyance disappointment disapproval disgust embarrassment fear grief nervousness remorse "
    "sadness",
    "positive": "admiration amusement approval caring desire excitement gratitude joy love optimism pride relief",
}


def read(path: Path) -> list[Row]:
    """The comments of a file whose emotions are all negative or all positive, each text once."""
    groups = {label: set(names.split()) for label, names in EMOTIONS.items()}
    found: dict[str, str] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            label = next((label for label, names in groups.items() if set(row["labels"]) <= names), None)
            if label is not None:
                found.setdefault(row["text"].strip(), label)
    return [{"text": text, "label": label} for text, label in found.items()]


def main() -> None:
    """Draw and write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "source", type=Path, metavar="SOURCE_DIR", help="folder of goemotions_{train,dev,test}.jsonl.gz"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ROOT / "src" / "spinformer" / "data" / "sentiment")
    args = parser.parse_args()
    taken: set[str] = set()
    for split, count in COUNTS.items():
        new = [row for row in read(args.source / f"goemotions_{split}.jsonl.gz") if row["text"] not in taken]
        rows = draw_balanced(new, tuple(EMOTIONS), count, args.seed)
        taken |= {row["text"] for row in rows}
        print(write_sample(rows, args.output / f"{split}.jsonl.gz"))


if __name__ == "__main__":
    main()
