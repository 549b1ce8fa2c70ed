"""Make src/spinformer/data/sentiment/{train,dev,test}.jsonl.gz: comments of GoEmotions, negative or positive.

Takes the folder with goemotions_train.jsonl.gz, goemotions_dev.jsonl.gz and goemotions_test.jsonl.gz (text, labels: a
list of emotions). A comment is positive if all of its emotions are, negative if all of its are, as the authors of
GoEmotions group them; others are left out, and so are comments with coarse words or words of sex, race and violence: a
package that people install need not print them. No text is in two of the files.
"""

import argparse
import gzip
import json
import re
from pathlib import Path

from research.paths import ROOT
from research.tools.samples import Row, draw_balanced, write_sample

COUNTS = {"test": 500, "dev": 500, "train": 4000}  # in the order in which texts are taken
EMOTIONS = {
    "negative": "anger annoyance disappointment disapproval disgust embarrassment fear grief nervousness remorse "
    "sadness",
    "positive": "admiration amusement approval caring desire excitement gratitude joy love optimism pride relief",
}
# Where a word begins like this, the comment is left out.
COARSE = re.compile(
    r"\b(abus|arse|ass\b|asses|assh|autis|bastard|bitch|bloody|boob|breast|bull ?sh|bullsh|cock|crap|cum\b|cunt|damn|"
    r"dead|death|dick|die\b|died|dies|dildo|drug|dumbass|dyke|erot|fag|fap|fetish|fuc|fuk|gay|genocid|god ?damn|"
    r"goddam|gun|hell\b|hitler|homo|hooker|horny|incel|islam|jackass|jew|jfc|kill|lesb|lgb|masturb|milf|mof|molest|"
    r"mother ?f|murder|muslim|naked|nazi|nig|nsfw|nud|pedo|penis|piss|pol\b|poop|porn|prick|prostit|pussy|queer|race\b|"
    r"racis|rape|rapi|retard|sex|sh1t|shat|shit|shoot|sht|slave|slut|stfu|suicid|terroris|thot|tit\b|tits|tranny|trans|"
    r"turd|vagin|virgin|wank|weed|white|whore|wtf|[\w*]*\*{2,})",
    re.IGNORECASE,
)


def read(path: Path) -> list[Row]:
    """The comments of a file whose emotions are all negative or all positive, each text once; without coarse ones."""
    groups = {label: set(names.split()) for label, names in EMOTIONS.items()}
    found: dict[str, str] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            label = next((label for label, names in groups.items() if set(row["labels"]) <= names), None)
            if label is not None and not COARSE.search(row["text"]):
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
