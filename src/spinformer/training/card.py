"""The model card that stands beside every trained model."""

from pathlib import Path
from typing import Any

from spinformer.data.texts import parts
from spinformer.training.recipe import WORD_HEADS

TEMPLATE = """---
library_name: transformers
pipeline_tag: text-classification
tags: [spinformer, neurogame, natural-language-inference]
---

# {title}

A text classifier trained with spinformer: {model}, {parameters:,} parameters.

```python
import {module}  # registers the architecture
from transformers import pipeline

classify = pipeline("text-classification", "path/to/this/folder")
classify({{"text": "A man sleeps.", "text_pair": "Nobody is awake."}})
```

## Training

{pairs:,} texts or pairs (`{train}`; {dropped:,} without a gold label left out), {learnt}
({truncated:,} cut to {max_length} tokens),
{length}, {minutes:.1f} minutes on {device}, {processes} process(es), seed {seed}.
The recipe, the sha256 of the data and the whole history stand in `training.json`.

## Scores on `{dev}`

{scores}

## Limits

The scores are of the data above and say nothing of other languages and domains.{importance}
"""

IMPORTANCE = """ The
importance that its game gives to words says how it weighs them, which is not what would happen without them."""
UNSCORED = "It was not scored by itself while it was trained."


def write_card(folder: Path, record: dict[str, Any]) -> Path:
    """README.md from the record of a training run (`spinformer.training.classifier.train`)."""
    recipe = record["recipe"]
    head = record.get("part", recipe["head"])  # of several that were trained at once, where there is a part
    words = head in WORD_HEADS
    base = Path(recipe["vectors"] if words else recipe["encoder"]).name
    evaluations = [entry for entry in record["history"] if "eval_accuracy" in entry]
    rows = [f"| {e['step']:,} | {e['eval_accuracy']:.4f} | {e['eval_loss']:.4f} |" for e in evaluations]
    teacher = "" if recipe["teacher"] is None else f" with the answers of `{Path(recipe['teacher']).name}`"
    path = folder / "README.md"
    path.write_text(
        TEMPLATE.format(
            title=folder.name,
            model=f"`{head}` on the word vectors `{base}`" if words else f"head `{head}` on the encoder `{base}`",
            module="spinformer.models.words" if words else "spinformer.models.neurogame",
            importance=IMPORTANCE if head in ("neurogame", "joint") else "",
            parameters=record["parameters"],
            pairs=record["pairs"],
            train=_names(recipe["train"]),
            dev=_names(recipe["dev"]),
            dropped=record["dropped"],
            truncated=record["truncated"],
            max_length=recipe["max_length"],
            learnt=f"learnt from as {record['rows']:,} rows{teacher}",
            length=f"{recipe['epochs']} epochs" if recipe["steps"] is None else f"{recipe['steps']:,} updates",
            minutes=record["seconds"] / 60,
            device=record["device"],
            processes=record["processes"],
            seed=recipe["seed"],
            scores="\n".join(
                ["| updates | accuracy | cross-entropy |", "|---|---|---|", *rows] if rows else [UNSCORED]
            ),
        )
    )
    return path


def _names(source: str) -> str:
    """Without the folders."""
    return " + ".join(Path(part).name for part in parts(source))
