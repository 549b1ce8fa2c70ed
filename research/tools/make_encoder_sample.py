"""Make research/data/snli_minilm.safetensors: hidden states of real sentence pairs.

Takes pairs from a JSON-lines file of SNLI and the encoder's folder. Stores the last hidden states (float16), the
token mask, the special-token mask and the tokens. Half of the pairs are short enough (at most 16 tokens) for exact
values by enumeration. Needs `pip install 'spinformer[nli]'`.
"""

import argparse
import gzip
import json
import random
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoTokenizer

from research.data import ENCODER_SAMPLE

SHORT = 16


def main() -> None:
    """Choose the pairs, encode them, write the sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--pairs", required=True, type=Path, help="snli_dev.jsonl.gz")
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ENCODER_SAMPLE)
    args = parser.parse_args()

    tokenizer = AutoTokenizer.from_pretrained(args.encoder, trust_remote_code=False)
    model = AutoModel.from_pretrained(args.encoder, trust_remote_code=False).eval()
    with gzip.open(args.pairs, "rt") as file:
        rows = [json.loads(line) for line in file]
    random.Random(args.seed).shuffle(rows)
    lengths = [len(tokenizer(row["premise"], row["hypothesis"])["input_ids"]) for row in rows[:2000]]
    short = [row for row, length in zip(rows, lengths, strict=False) if 10 <= length <= SHORT]
    other = [row for row, length in zip(rows, lengths, strict=False) if length > SHORT]
    chosen = short[: args.count // 2] + other[: args.count - args.count // 2]

    batch = tokenizer(
        [row["premise"] for row in chosen],
        [row["hypothesis"] for row in chosen],
        padding=True,
        return_tensors="pt",
        return_special_tokens_mask=True,
    )
    special = batch.pop("special_tokens_mask").bool()
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].bool()
    pairs = [
        {
            "premise": row["premise"],
            "hypothesis": row["hypothesis"],
            "label": row["label"],
            "tokens": tokenizer.convert_ids_to_tokens(ids[keep].tolist()),
        }
        for row, ids, keep in zip(chosen, batch["input_ids"], mask, strict=True)
    ]
    # Rows of different lengths are stored end to end, without padding.
    tensors = {
        "hidden": hidden[mask].half(),
        "special": special[mask],
        "lengths": mask.sum(1),
    }
    save_file(tensors, args.output, metadata={"pairs": json.dumps(pairs), "encoder": "all-MiniLM-L6-v2"})
    print(f"{args.output}: {len(pairs)} pairs, {args.output.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
