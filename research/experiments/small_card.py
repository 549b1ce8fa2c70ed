"""The model card of the small classifier, from the record of its making."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spinformer._base.files import atomic_text

TEMPLATE = """---
library_name: transformers
pipeline_tag: text-classification
license: apache-2.0
tags: [spinformer, neurogame, natural-language-inference]
---

# neurogame-small-nli

A small classifier of English sentence pairs: does the second sentence follow from the first (entailment), contradict it
(contradiction), or neither (neutral)? It is part of the package spinformer, and its folder also holds its *game*, so
that each answer is explained from one pass, without network.

```python
import spinformer

explainer = spinformer.Explainer.from_pretrained("small")
print(explainer("A man sleeps.", "Nobody is awake."))
```

## The model

Pooling head `neurogame` on an encoder of {layers} layers, {parameters:,} parameters, with {pieces:,} word pieces. The
encoder began as layers {kept} of the one in `neurogame-minilm-nli`, which was fine-tuned from `all-MiniLM-L6-v2`
(Apache-2.0). It reads at most {positions} tokens. Matrices are stored in 8 bits with a scale for each row, and are
float32 when loaded.

## Training

It learnt from the answers of `neurogame-minilm-nli` to {pairs:,} pairs of SNLI and MultiNLI, with their labels, and to
changed views of them: {rows:,} rows, {steps:,} updates of {batch:,} rows, {minutes:.1f} minutes on {device}.
`spinformer reproduce small` makes it, and `research/results/nli-small.json` in the repository holds the recipe, the
sha256 of the data and all scores.

## Scores, as it is stored

| set | pairs | accuracy |
| --- | ---: | ---: |
{scores}

The encoder `all-MiniLM-L6-v2` was trained on data that includes training pairs of SNLI and MultiNLI, but none of the
sets above.

## The game

`game/` predicts what the classifier would answer if it saw only some of the words. It explains {fit:.1%} of the
variance of these answers on {held} held-out texts, {passes} masked passes each. `game/misfit.json` says how far it is
from the classifier; explanations add it to their standard errors.

## Limits

- It is made to try the library and to teach. Take a larger classifier, or your own, where answers matter.
- Trained on English sentence pairs (SNLI, CC BY-SA 4.0, and MultiNLI). Other languages and domains were not tested.
  Characters that do not occur in these texts are unknown to it.
- Explanations from one pass are estimates. The option `passes=` corrects them by masked passes.
"""


def write_card(folder: Path, record: Mapping[str, Any]) -> Path:
    """Write `folder`/README.md from the record of a variant, as `make_variant` stores it."""
    outcome, config = record["outcome"], record["config"]
    recipe = config["recipe"]
    rows = [f"| {name} | {row['count']:,} | {100 * row['accuracy']:.2f} |" for name, row in outcome["scores"].items()]
    text = TEMPLATE.format(
        layers=len(config["layers"]),
        kept=", ".join(str(layer + 1) for layer in config["layers"]),
        pieces=config["pieces"],
        positions=config["positions"],
        parameters=outcome["parameters"],
        pairs=outcome["pairs"],
        rows=outcome["rows"],
        steps=recipe["steps"],
        batch=recipe["batch_size"],
        minutes=outcome["train_seconds"] / 60,
        device=outcome["device"],
        scores="\n".join(rows),
        fit=outcome["fit"],
        held=outcome["held_out"],
        passes=outcome["passes"],
    )
    return atomic_text(folder / "README.md", text)
