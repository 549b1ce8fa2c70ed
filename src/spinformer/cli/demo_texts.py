"""The demo's parts with texts: a pair explained; a sentiment classifier fine-tuned, scored, grounded and explained."""

import shutil
import sys
from pathlib import Path
from typing import Any

from spinformer.cli.demo_session import Session, heading
from spinformer.cli.options import takes_color

PREMISE, HYPOTHESIS = "Two children are playing football in the rain.", "The kids are indoors."
REVIEWS = (
    "The room was small and loud, but the people were wonderful and I loved every day.",
    "Not good at all, I am really disappointed.",
)


def explain_pair(model: str, output: Path) -> Path:
    """Explain one pair in the terminal and as a page; the path of the page."""
    heading("1. Which words decided, and which pairs of words?")
    page = output / "pair.html"
    session = Session()
    session.run(f"""
import spinformer

explainer = spinformer.Explainer.from_pretrained({model!r})
explanation = explainer({PREMISE!r}, {HYPOTHESIS!r})
print(explanation)
""")
    _show(session["explanation"])
    session.run(f"explanation.to_html({str(page)!r})")
    print(f"the page: {page}")
    return page


def own_classifier(model: str, output: Path, texts: int) -> Path:
    """Fine-tune a classifier of single texts, ground it and explain two texts; the path of the page."""
    heading("2. A classifier of your own: fine-tune, ground, explain")
    folder, page = output / "sentiment", output / "sentiment.html"
    if (folder / "recipe.json").is_file():  # of an earlier demo
        shutil.rmtree(folder)
    session = Session()
    print(f"Comments of people, negative or positive (GoEmotions): {texts:,} to learn from, 500 to score on.")
    session.run(f"""
from pathlib import Path
from spinformer.training import ClassifierRecipe, train_classifier

recipe = ClassifierRecipe(
    encoder={model!r},
    head="mean",
    train="sentiment:train",
    dev="sentiment:dev",
    limit={texts},
    max_length=64,
    epochs=1,
    batch_size=16,
    learning_rate=2e-4,
    save_steps=0,
)
record = train_classifier(recipe, Path({str(folder)!r}))
""")
    print(f"{session['record']['seconds']:.0f} s")
    session.run(f"""
import spinformer
from spinformer.data import load_texts
from spinformer.evaluate import evaluate

model, tokenizer = spinformer.load_classifier({str(folder)!r})
scores = evaluate(model, tokenizer, load_texts("sentiment:test")).scores
""")
    scores = session["scores"]
    low, high = scores.interval
    print(
        f"accuracy on {scores.count} held-out texts: {scores.accuracy:.1%} (95% interval {low:.1%} to {high:.1%}); "
        "by chance 50%"
    )
    print("\nNow its game, from texts without labels, so that one pass explains a text:")
    session.run(f"""
explainer = spinformer.Explainer(model, tokenizer)
comments = load_texts("sentiment:train").select(range({texts * 3 // 4}))
explainer.ground(comments, {str(folder)!r}, epochs=3, batch_size=16, subsets=3)
explanations = explainer({list(REVIEWS)!r})
""")
    for explanation in session["explanations"]:
        _show(explanation)
        for word in explanation.top_words(3):
            print(f"    {word.text:<14}{word.importance:+.3f} ± {word.importance_stderr:.3f}")
    print("\nIs a game from so few texts too coarse? Real passes over masked texts make its values sharper:")
    session.run(f"""
sharper = explainer({REVIEWS[0]!r}, passes=256)
print(sharper)
""")
    session.run(f"""
from spinformer.explain.render.html import save_html

save_html(explanations + [sharper], Path({str(page)!r}))
""")
    print(f"the page: {page}")
    print(f"classifier and game: {folder}; `spinformer explain {folder} TEXT` explains more")
    return page


def _show(explanation: Any) -> None:
    from spinformer.explain.render.text import colored_text

    print(f"\n{colored_text(explanation, color=takes_color(sys.stdout))}")
