"""Make a file of texts to ground a classifier on, from files of any texts of its kind. Grounding needs no labels.

A classifier of sentences is often trained on few of them: the 67,349 texts of SST-2 are phrases of 7,000 sentences,
of 9 words in the mean, where a sentence has 19. A game learnt from these alone knows new sentences less well. So here:

- texts of at least MIN_WORDS words, each once, and of longer texts (reviews) the sentences;
- splices: two or three of these joined by a word of LINKS, and a stretch of SPLICE_WORDS words cut out of the middle.

The same input gives the same file, byte for byte, with the same version of zlib.
"""

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from spinformer.data.sources import load_texts

MIN_WORDS, MAX_WORDS = 6, 60
SPLICE_WORDS = (8, 30)
LINKS = (" ", " , ", " but ", " and ", " . ", " , but ")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|<br\s*/?>")


def sentences(texts: Sequence[str]) -> list[str]:
    """The texts of MIN_WORDS to MAX_WORDS words, and the sentences of longer ones, each once, in order."""
    parts = (part for text in texts for part in _parts(text))
    return list(dict.fromkeys(part for part in parts if MIN_WORDS <= len(part.split()) <= MAX_WORDS))


def _parts(text: str) -> Iterator[str]:
    if len(text.split()) <= MAX_WORDS:
        yield text
    else:
        yield from (part.strip() for part in SENTENCE_END.split(text))


def splice(texts: Sequence[str], generator: random.Random) -> str:
    """A stretch of two or three texts, drawn at random and joined."""
    joined = generator.choice(LINKS).join(generator.choice(texts) for _ in range(generator.choice((2, 2, 3))))
    words, length = joined.split(), generator.randint(*SPLICE_WORDS)
    start = generator.randint(0, max(0, len(words) - length))
    return " ".join(words[start : start + length])


def main() -> None:
    """Read, cut, splice and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="file to write, .jsonl.gz with the column text")
    parser.add_argument("files", nargs="+", help="files of texts")
    parser.add_argument("--first", default="text", help="their column (default %(default)s)")
    parser.add_argument("--splices", type=int, default=0, help="splices beside the texts (default 0)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    texts = sentences(load_texts("+".join(args.files), first=args.first, labelled=False).first)
    generator = random.Random(args.seed)
    rows = [*texts, *(splice(texts, generator) for _ in range(args.splices))]
    with args.output.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
        packed.write("".join(json.dumps({"text": row}, ensure_ascii=False) + "\n" for row in rows).encode())
    print(f"{len(texts)} texts and {args.splices} splices in {args.output}")


if __name__ == "__main__":
    main()
