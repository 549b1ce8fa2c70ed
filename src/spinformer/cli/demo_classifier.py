"""The classifiers' part of the demo: a trained one scored and explained, and a small one trained now."""

import shutil
from pathlib import Path
from typing import Any

from spinformer._base.characters import printable
from spinformer._base.extras import require
from spinformer.data.sources import load_texts
from spinformer.evaluate.answers.evaluation import evaluate
from spinformer.explain.explainer import Explainer
from spinformer.explain.render.html import save_html
from spinformer.explain.render.text import colored_text
from spinformer.models.loading import load_tokenizer
from spinformer.models.pretrained import model_of

PAIRS = (
    ("A man in a red shirt is sleeping on a bench in the park.", "The man is not awake."),
    ("Two dogs are running through the snow.", "Two cats are resting at home."),
)
# From random weights: small enough to learn something in a minute on two cores.
ENCODER = {"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 192}
EPOCHS = 12


def score_and_explain(model: str, output: Path) -> Path:
    """Score the classifier on the embedded test pairs and explain two pairs; the path of their report."""
    explainer = Explainer.from_pretrained(model)
    scores = evaluate(explainer.model, explainer.tokenizer, load_texts("sample:test")).scores
    low, high = scores.interval
    print(
        f"  {scores.count} pairs: accuracy {scores.accuracy:.1%} (95% interval {low:.1%} to {high:.1%}), "
        f"macro F1 {scores.macro_f1:.3f}, calibration error {scores.ece:.3f}"
    )
    explanations = [explainer(*pair) for pair in PAIRS]
    for explanation in explanations:
        print(f"\n{colored_text(explanation)}")
        for word in explanation.top_words(3):
            print(f"    {printable(word.text):<14}{word.importance:+.3f} ± {word.importance_stderr:.3f}")
        for first, second, value in explanation.top_pairs(2):
            kind = "synergy" if value > 0 else "antagonism"
            print(f"    {printable(first.text)} - {printable(second.text)}: {value:+.3f} ({kind})")
    return save_html(explanations, output / "explanations.html", "Two pairs of sentences")


def train_small(model: str, output: Path, epochs: int = EPOCHS) -> dict[str, Any]:
    """Train a NeuroGame classifier with a small encoder of random weights; the record of its training.

    model: the classifier whose tokenizer it takes.
    """
    from spinformer.training.classifier.recipe import ClassifierRecipe
    from spinformer.training.classifier.train import train_classifier

    transformers = require("transformers", extra="nli")
    encoder, folder = output / "encoder", output / "small"
    shutil.rmtree(folder, ignore_errors=True)
    tokenizer = load_tokenizer(model)
    config = transformers.BertConfig(**ENCODER, vocab_size=len(tokenizer), max_position_embeddings=128)
    model_of(config).save_pretrained(encoder)
    tokenizer.save_pretrained(encoder)
    recipe = ClassifierRecipe(
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
    return train_classifier(recipe, folder)
