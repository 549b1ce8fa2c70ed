"""The inference part of the demonstration: the shipped classifier scored and explained, a small one trained now."""

import shutil
from pathlib import Path
from typing import Any

from transformers import AutoModel, AutoTokenizer, BertConfig

from spinformer.data.named import load_texts
from spinformer.evaluate.classifier import evaluate
from spinformer.explain import coloured, explain
from spinformer.explain.html import save_html
from spinformer.models.load import load_classifier
from spinformer.models.shipped import default_model
from spinformer.training.classifier import train
from spinformer.training.recipe import Recipe

PAIRS = (
    ("A man in a red shirt is sleeping on a bench in the park.", "The man is not awake."),
    ("Two dogs are running through the snow.", "Two cats are resting at home."),
)
SAMPLES = 64  # coalitions for each explanation, more than the quick default: smaller error bars
# From random weights: what can be seen to learn in about a minute on two cores.
SMALL: dict[str, Any] = {"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 192}
EPOCHS = 12


def shipped(output: Path) -> Path:
    """Score the classifier in `checkpoints/` on the embedded test pairs, explain two pairs, and write their report."""
    model, tokenizer = load_classifier(default_model())
    texts = load_texts("sample:test")
    scores = evaluate(model, tokenizer, texts).scores
    low, high = scores.interval
    print(
        f"  {scores.count} pairs: accuracy {scores.accuracy:.1%} (95% interval {low:.1%} to {high:.1%}), "
        f"macro F1 {scores.macro_f1:.3f}, calibration error {scores.ece:.3f}"
    )
    found = [explain(model, tokenizer, *pair, samples=SAMPLES, pair_samples=SAMPLES // 2) for pair in PAIRS]
    for explanation in found:
        print(f"\n{coloured(explanation)}")
        for word in explanation.top_words(3):
            print(f"    {word.text:<14}{word.shapley:+.3f} ± {word.shapley_stderr:.3f}")
        for one, other, value in explanation.top_pairs(2):
            print(f"    {one.text} - {other.text}: {value:+.3f} ({'synergy' if value > 0 else 'antagonism'})")
    return save_html(found, output / "explanations.html", "Two pairs of sentences")


def small(output: Path, epochs: int = EPOCHS) -> dict[str, Any]:
    """Train a NeuroGame classifier with a small encoder of random weights on the embedded pairs; what it recorded."""
    encoder, place = output / "encoder", output / "small"
    shutil.rmtree(place, ignore_errors=True)
    tokenizer = AutoTokenizer.from_pretrained(default_model())
    sizes = {**SMALL, "vocab_size": len(tokenizer), "max_position_embeddings": 128}
    AutoModel.from_config(BertConfig(**sizes)).save_pretrained(encoder)
    tokenizer.save_pretrained(encoder)
    recipe = Recipe(
        encoder=str(encoder),
        game={"couplings": "linear", "draws": "shared"},
        train="sample:train",
        dev="sample:dev",
        max_length=64,
        epochs=epochs,
        batch_size=32,
        learning_rate=1e-3,
        save_steps=0,
    )
    return train(recipe, place)
