"""The model card of a trained classifier."""

from pathlib import Path
from typing import Any

from spinformer._base.files import atomic_text
from spinformer.data.texts import split_source
from spinformer.models.pooling import POOLING_HEADS

TEMPLATE = """---
library_name: transformers
pipeline_tag: text-classification
tags: [spinformer, neurogame, natural-language-inference]
---

# {title}

A text classifier trained with spinformer: {model}, {parameters:,} parameters.

```python
import spinformer.models  # registers the architecture
from transformers import pipeline

classify = pipeline("text-classification", "path/to/this/folder")
classify({{"text": "A man sleeps.", "text_pair": "Nobody is awake."}})
```

## Training

{pairs:,} texts or pairs (`{train}`; {dropped:,} without a gold label left out), {learnt}
({truncated:,} cut to {max_length} tokens),
{length}, {minutes:.1f} minutes on {device}, {processes} process(es), seed {seed}.
The recipe, the sha256 of the data and the full history are in `training.json`.

## Scores on `{dev}`

{scores}

## Limits

The scores hold for the data above; other languages and domains were not tested.{importance}
"""

IMPORTANCE = """ The
importance that the NeuroGame layer gives to words says how it weighs them, not what the model would answer without
them."""
UNSCORED = "It was not scored by itself during training."


def write_card(folder: Path, record: dict[str, Any]) -> Path:
    """Write `folder`/README.md from the record of a training run, as `train_classifier` returns it."""
    recipe = record["recipe"]
    baseline = recipe.get("baseline")
    head = record.get("part", recipe["head"])  # one of several pooling heads that were trained at once, or the only one
    if baseline is None:
        model = f"pooling head `{head}` on the encoder `{Path(recipe['encoder']).name}`"
    else:
        model = f"`{baseline}` on the word vectors `{Path(recipe['vectors']).name}`"
    evaluations = [entry for entry in record["history"] if "eval_accuracy" in entry]
    rows = [f"| {e['step']:,} | {e['eval_accuracy']:.4f} | {e['eval_loss']:.4f} |" for e in evaluations]
    teacher = "" if recipe["teacher"] is None else f" with the answers of `{Path(recipe['teacher']).name}`"
    return atomic_text(
        folder / "README.md",
        TEMPLATE.format(
            title=folder.name,
            model=model,
            importance=IMPORTANCE if baseline is None and POOLING_HEADS[head].uses_layer else "",
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
        ),
    )


def _names(source: str) -> str:
    """The names of data files, without their folders."""
    return " + ".join(Path(part).name for part in split_source(source))
