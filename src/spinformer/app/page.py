"""The page itself, in Gradio: two tabs and what their buttons do."""

import json
import logging
import os
from collections.abc import Callable
from typing import Any

from spinformer.app import film, limits, markup
from spinformer.app.classifier import SAMPLES, Classifier
from spinformer.app.digits import STRENGTH, STRENGTHS, Digits
from spinformer.app.pad import READ, pad
from spinformer.explain.grounded import TEMPERATURE
from spinformer.extras import require

TITLE = "spinformer: which words decided"
# Short name, premise, hypothesis.
EXAMPLES = (
    ("Asleep", "A man is sleeping on a bench in the park.", "The man is awake and running."),
    ("Outside", "Two dogs play in the snow.", "Some animals are outside."),
    ("Music", "A woman plays the violin on a stage.", "The woman is famous."),
    ("Nobody", "Three children are eating ice cream.", "Nobody is eating."),
    ("Colours", "A boy in a red shirt kicks a ball.", "A boy in a blue shirt kicks a ball."),
)
INTRODUCTION = (
    "Does the premise entail the hypothesis, contradict it, or neither? A classifier decides; the cooperative game "
    "that it plays with its words says which of them decided, and which pairs, from one forward pass."
)
ATTRACTOR = (
    "Self-attention as the descent of a local energy, trained here on a few thousand digits without backpropagation "
    "when it is first asked. Choose a digit or draw one, damage it, and watch it being restored."
)
log = logging.getLogger(__name__)


def build(classifier: Classifier, digits: Digits | None = None) -> Any:
    """The page as Gradio blocks. The first example is explained at once: a classifier without a game fails here."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    gradio = require("gradio", extra="app")
    with gradio.Blocks(title=TITLE, analytics_enabled=False, fill_width=False) as blocks:
        gradio.HTML('<header class="top"><h1>spinformer</h1><p>attention made of statistical physics</p></header>')
        with gradio.Tabs():
            with gradio.Tab("Inference", id="inference"):
                _inference(gradio, classifier)
            with gradio.Tab("Attractor", id="attractor"):
                _attractor(gradio, digits or Digits())
    blocks.queue(max_size=limits.QUEUE, default_concurrency_limit=limits.AT_ONCE)
    return blocks


def _inference(gradio: Any, classifier: Classifier) -> None:
    first = EXAMPLES[0]
    with gradio.Row(elem_classes="columns"):
        with gradio.Column(scale=2, min_width=300):
            gradio.HTML(f'<p class="lead">{INTRODUCTION}</p>')
            with gradio.Row(elem_classes="examples", elem_id="examples"):
                buttons = [gradio.Button(name, size="sm", min_width=60) for name, _, _ in EXAMPLES]
            premise = _textbox(gradio, "Premise", first[1])
            hypothesis = _textbox(gradio, "Hypothesis", first[2])
            button = gradio.Button("Explain", variant="primary", elem_id="explain")
            temperature = gradio.Slider(
                *limits.TEMPERATURES,
                value=TEMPERATURE,
                step=0.05,
                label="Temperature γ of the Ising model",
                info="Cold: attention decides; hot: it hesitates.",
                elem_id="temperature",
            )
            samples = gradio.Slider(
                *limits.SAMPLES,
                value=SAMPLES,
                step=8,
                label="Samples",
                info="Coalitions of words that are asked: more make standard errors smaller.",
                elem_id="samples",
            )
        with gradio.Column(scale=3, min_width=300):
            result = gradio.HTML(markup.shown(classifier.explain(*first[1:])), elem_id="explanation")
    answer = _careful(lambda *asked: markup.shown(classifier.explain(*asked)))
    inputs = [premise, hypothesis, temperature, samples]
    options = _options("explain", limits.AT_ONCE)
    asked = gradio.on([button.click, premise.submit, hypothesis.submit], answer, inputs, result, **options)
    gradio.on([temperature.release, samples.release], answer, inputs, result, **options)
    chosen = []
    for one, (_, *texts) in zip(buttons, EXAMPLES, strict=True):
        filled = one.click(None, None, [premise, hypothesis], js=f"() => {json.dumps(texts)}", api_visibility="private")
        chosen.append(filled.then(answer, inputs, result, **options))
    for event in (asked, *chosen):
        event.then(None, js=_show("explanation"), api_visibility="private")


def _options(name: str, at_once: int) -> dict[str, Any]:
    """Of a request that makes work: few at once, the last of many by one visitor, not in any list of functions."""
    return {
        "api_name": name,
        "api_visibility": "private",
        "concurrency_id": name,
        "concurrency_limit": at_once,
        "show_progress": "minimal",
        "trigger_mode": "always_last",
    }


def _show(result: str) -> str:
    """In the browser: where the page is narrow the result lies below the buttons; go there."""
    return f"() => {{ innerWidth < 700 && document.getElementById('{result}').scrollIntoView(); }}"


def _textbox(gradio: Any, label: str, value: str) -> Any:
    return gradio.Textbox(
        value, label=label, lines=2, max_lines=6, max_length=limits.CHARACTERS, elem_id=label.lower(), submit_btn=False
    )


def _attractor(gradio: Any, digits: Digits) -> None:
    with gradio.Row(elem_classes="columns"):
        with gradio.Column(scale=2, min_width=300):
            gradio.HTML(f'<p class="lead">{ATTRACTOR}</p>')
            picture = pad(gradio, digits.examples())
            kind = gradio.Radio(list(limits.DAMAGES), value="hide patches", label="Damage", elem_id="damage")
            amount = gradio.Slider(
                0,
                max(limits.DAMAGES.values()),
                value=0.4,
                step=0.05,
                label="Amount",
                info=f"Share of hidden patches (up to {limits.DAMAGES['hide patches']:g}), or variance of the noise.",
                elem_id="amount",
            )
            button = gradio.Button("Restore", variant="primary", elem_id="restore")
            steps = gradio.Slider(*limits.STEPS, value=6, step=1, label="Steps", elem_id="steps")
            strength = gradio.Slider(
                *STRENGTHS, value=STRENGTH, step=0.05, label="Strength λ of the attention", elem_id="strength"
            )
            seed = gradio.Number(0, label="Seed of the damage", precision=0, minimum=0, maximum=limits.SEEDS)
        with gradio.Column(scale=3, min_width=300):
            result = gradio.HTML('<p class="lead">The trajectory will be shown here.</p>', elem_id="trajectory")
    answer = _careful(lambda *asked: film.shown(digits.watch(*asked)))
    inputs = [picture, kind, amount, steps, strength, seed]
    options = _options("watch", 1)
    asked = button.click(answer, inputs, result, js=READ, **options)
    asked.then(None, js=_show("trajectory"), api_visibility="private")
    gradio.on([steps.release, strength.release, amount.release], answer, inputs, result, js=READ, **options)


def _careful(answer: Callable[..., str]) -> Callable[..., str]:
    """Errors of the visitor become a message; any other is logged, and the visitor learns only that there was one."""

    def answered(*asked: object) -> str:
        try:
            return answer(*asked)
        except ValueError as error:
            return markup.message(str(error))
        except Exception:
            log.exception("a request failed")
            return markup.message("Something went wrong on the server. Please try another input.")

    return answered
