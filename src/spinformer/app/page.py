"""The page in Gradio: two tabs, and what their buttons do."""

import json
import logging
import os
from collections.abc import Callable
from typing import Any

from spinformer._base.extras import require
from spinformer.app import film, limits, markup
from spinformer.app.classifier import SAMPLES, Classifier
from spinformer.app.digits import STRENGTH, STRENGTHS, Digits
from spinformer.app.pad import READ_PIXELS, pad
from spinformer.explain.grounded import TEMPERATURE

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
    "Does the premise entail the hypothesis, contradict it, or neither? A classifier decides. Its cooperative game "
    "says which words, and which pairs of words, decided, from one forward pass."
)
ATTRACTOR = (
    "Self-attention as the descent of a local energy. The network is trained here, at the first request, on a few "
    "thousand digits, without backpropagation. Choose a digit or draw one, damage it, and watch it being restored."
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
    blocks.state_session_capacity = limits.SESSIONS
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
            cold = "Cold: attention decides; hot: it hesitates."
            label = "Temperature γ of the Ising model"
            temperature = _slider(gradio, "temperature", label, limits.TEMPERATURES, TEMPERATURE, 0.05, cold)
            more = "Coalitions of words: more make standard errors smaller."
            samples = _slider(gradio, "samples", "Samples", limits.SAMPLES, SAMPLES, 64, more)
        with gradio.Column(scale=3, min_width=300):
            result = gradio.HTML(markup.explanation_html(classifier.explain(*first[1:])), elem_id="explanation")
    answer = _guarded(lambda *values: markup.explanation_html(classifier.explain(*values)))
    inputs = [premise, hypothesis, temperature, samples]
    options = _options("explain", limits.AT_ONCE)
    request = gradio.on([button.click, premise.submit, hypothesis.submit], answer, inputs, result, **options)
    gradio.on([temperature.release, samples.release], answer, inputs, result, **options)
    requests = [request]
    for example, (_, *texts) in zip(buttons, EXAMPLES, strict=True):
        filled = example.click(
            None, None, [premise, hypothesis], js=f"() => {json.dumps(texts)}", api_visibility="private"
        )
        requests.append(filled.then(answer, inputs, result, **options))
    for event in requests:
        event.then(None, js=_show("explanation"), api_visibility="private")


def _options(name: str, at_once: int) -> dict[str, Any]:
    """Options of a request: at most `at_once` run at a time, a visitor's last one wins, the API does not list it.

    Values come as they were sent: the function checks them. Gradio would print a traceback of each that it refuses.
    """
    return {
        "preprocess": False,
        "api_name": name,
        "api_visibility": "private",
        "concurrency_id": name,
        "concurrency_limit": at_once,
        "show_progress": "minimal",
        "trigger_mode": "always_last",
    }


def _show(result: str) -> str:
    """JavaScript that scrolls to the result where the page is narrow and the result is below the buttons."""
    return f"() => {{ innerWidth < 700 && document.getElementById('{result}').scrollIntoView(); }}"


def _textbox(gradio: Any, label: str, value: str) -> Any:
    return gradio.Textbox(
        value, label=label, lines=2, max_lines=6, max_length=limits.CHARACTERS, elem_id=label.lower(), submit_btn=False
    )


def _slider(
    gradio: Any,
    name: str,
    label: str,
    bounds: tuple[float, float],
    value: float,
    step: float,
    info: str | None = None,
) -> Any:
    return gradio.Slider(*bounds, value=value, step=step, label=label, info=info, elem_id=name)


def _attractor(gradio: Any, digits: Digits) -> None:
    with gradio.Row(elem_classes="columns"):
        with gradio.Column(scale=2, min_width=300):
            gradio.HTML(f'<p class="lead">{ATTRACTOR}</p>')
            picture = pad(gradio, digits.examples())
            kind = gradio.Radio(list(limits.DAMAGES), value="hide patches", label="Damage", elem_id="damage")
            info = f"Share of hidden patches (up to {limits.DAMAGES['hide patches']:g}), or variance of the noise."
            amount = _slider(gradio, "amount", "Amount", (0, max(limits.DAMAGES.values())), 0.4, 0.05, info)
            button = gradio.Button("Restore", variant="primary", elem_id="restore")
            steps = _slider(gradio, "steps", "Steps", limits.STEPS, 6, 1)
            strength = _slider(gradio, "strength", "Strength λ of the attention", STRENGTHS, STRENGTH, 0.05)
            seed = gradio.Number(0, label="Seed of the damage", precision=0, minimum=0, maximum=limits.SEEDS)
        with gradio.Column(scale=3, min_width=300):
            result = gradio.HTML('<p class="lead">The trajectory will be shown here.</p>', elem_id="trajectory")
    answer = _guarded(lambda *values: film.film_html(digits.watch(*values)))
    inputs = [picture, kind, amount, steps, strength, seed]
    options = _options("watch", 1)
    request = button.click(answer, inputs, result, js=READ_PIXELS, **options)
    request.then(None, js=_show("trajectory"), api_visibility="private")
    gradio.on([steps.release, strength.release, amount.release], answer, inputs, result, js=READ_PIXELS, **options)


def _guarded(answer: Callable[..., str]) -> Callable[..., str]:
    """`answer`, with errors of the visitor shown as a message; any other is logged, and the visitor gets no details."""

    def guarded(*values: object) -> str:
        try:
            return answer(*values)
        except ValueError as error:
            return markup.message_html(str(error))
        except Exception:
            log.exception("a request failed")
            return markup.message_html("Something went wrong on the server. Please try another input.")

    return guarded
