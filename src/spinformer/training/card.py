"""The model card that stands beside every trained model."""

from pathlib import Path
from typing import Any

TEMPLATE = """---
library_name: transformers
pipeline_tag: text-classification
tags: [spinformer, neurogame, natural-language-inference]
---

# {title}

A text classifier trained with spinformer: head `{head}` on the encoder
`{encoder}`, {parameters:,} parameters.

```python
import spinformer.models.neurogame  # registers the architecture
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

Trained on English sentence pairs; figures beyond the data above say nothing of other languages and domains. Importance
that the head gives to words is what its game computes, and is not a causal claim unless the recipe's objective says so.
"""

UNSCORED = "It was not scored by itself while it was trained."


def write_card(folder: Path, record: dict[str, Any]) -> Path:
    """README.md from the record of a training run (`spinformer.training.classifier.train`)."""
    recipe = record["recipe"]
    evaluations = [entry for entry in record["history"] if "eval_accuracy" in entry]
    rows = [f"| {e['step']:,} | {e['eval_accuracy']:.4f} | {e['eval_loss']:.4f} |" for e in evaluations]
    teacher = "" if recipe["teacher"] is None else f" with the answers of `{Path(recipe['teacher']).name}`"
    path = folder / "README.md"
    path.write_text(
        TEMPLATE.format(
            title=folder.name,
            head=record.get("part", recipe["head"]),  # of several that were trained at once, where there is a part
            encoder=Path(recipe["encoder"] if recipe["head"] not in ("dam", "esim") else recipe["vectors"]).name,
            parameters=record["parameters"],
            pairs=record["pairs"],
            train=" + ".join(Path(part).name for part in recipe["train"].split("+")),
            dev=Path(recipe["dev"]).name,
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
