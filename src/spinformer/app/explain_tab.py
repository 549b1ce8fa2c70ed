"""The first tab: a text, or two, the class to explain, and how the numbers are obtained."""

import json
from typing import Any

from spinformer.app import limits, markup
from spinformer.app.classifier import SAMPLES, Classifier
from spinformer.app.controls import (
    check_passes,
    class_choice,
    guarded,
    request_options,
    show,
    slider,
    status_line,
    telling,
)
from spinformer.explain.grounded import TEMPERATURE

SWITCH = "(on) => { document.body.classList.toggle('physics', on); }"
REFINE = (
    "The numbers come from one pass, through a game that has learnt to predict the classifier. Refine asks the "
    "classifier itself, with words hidden, and corrects them."
)


def explain_tab(gradio: Any, classifier: Classifier) -> None:
    """Add the tab's controls and what they do. The first example is explained at once."""
    task = classifier.task
    _, *first = task.examples[0]
    with gradio.Row(elem_classes="columns"):
        with gradio.Column(scale=2, min_width=300):
            gradio.HTML(f'<p class="lead">{task.introduction}</p>')
            with gradio.Row(elem_classes="examples", elem_id="examples"):
                buttons = [gradio.Button(name, size="sm", min_width=60) for name, _, _ in task.examples]
            one, two = _textboxes(gradio, task.box_names, first)
            target, against = class_choice(gradio, task, "explain")
            button = gradio.Button("Explain", variant="primary", elem_id="explain")
            passes, refine, status = _refinement(gradio)
            switch, temperature, samples = _physics(gradio)
        with gradio.Column(scale=3, min_width=300):
            result = gradio.HTML(markup.explanation_html(classifier.explain(*first)), elem_id="explanation")

    answer = guarded(lambda *values: markup.explanation_html(classifier.explain(*values)))
    inputs = [one, two, temperature, samples, target, against]
    options = request_options("explain", limits.AT_ONCE)
    requests = [gradio.on([button.click, one.submit, two.submit], answer, inputs, result, **options)]
    gradio.on([temperature.release, samples.release, target.change, against.change], answer, inputs, result, **options)
    for example, (_, *texts) in zip(buttons, task.examples, strict=True):
        filled = example.click(None, None, [one, two], js=f"() => {json.dumps(texts)}", api_visibility="private")
        requests.append(filled.then(answer, inputs, result, **options))

    progress = gradio.Progress()

    def refined(
        text: object,
        text_pair: object,
        temperature: object,
        samples: object,
        target: object,
        against: object,
        passes: object,
        progress: Any = progress,
    ) -> str:
        tell = telling(gradio, progress, "passes of the classifier")
        values = (text, text_pair, temperature, samples, target, against, passes)
        return markup.explanation_html(classifier.refine(*values, tell=tell))

    options = request_options("refine", 1, status=status)
    requests.append(refine.click(guarded(refined), [*inputs, passes], result, **options))
    switch.change(None, switch, None, js=SWITCH, api_visibility="private")
    for event in requests:
        event.then(None, js=show("explanation"), api_visibility="private")


def _textboxes(gradio: Any, names: tuple[str, ...], texts: list[str]) -> tuple[Any, Any]:
    """A box for each text; the second is hidden where there is one text."""
    labels = [*names, ""][:2]
    one, two = (
        gradio.Textbox(
            text,
            label=label,
            lines=2,
            max_lines=6,
            max_length=limits.CHARACTERS,
            elem_id=name,
            submit_btn=False,
            visible=bool(label),
        )
        for name, label, text in zip(("first-text", "second-text"), labels, texts, strict=True)
    )
    return one, two


def _refinement(gradio: Any) -> tuple[Any, Any, Any]:
    """How many passes, the button that spends them, and where it shows how many are spent."""
    gradio.HTML(f'<div class="refine"><h3>More exact numbers</h3><p class="lead">{REFINE}</p></div>')
    with gradio.Row(elem_classes="spend"):
        passes = gradio.Radio(check_passes(), value=limits.PASSES[1], label="Passes", elem_id="passes", scale=3)
        refine = gradio.Button("Refine", elem_id="refine", scale=1, min_width=100)
    return passes, refine, status_line(gradio, "refine-status")


def _physics(gradio: Any) -> tuple[Any, Any, Any]:
    """The switch, and what it shows."""
    switch = gradio.Checkbox(False, label="Show the physics: the game's values and the Ising model", elem_id="physics")
    cold = "Cold: attention decides; hot: it hesitates."
    name = "Temperature γ of the Ising model"
    hidden = {"elem_classes": "physics"}
    temperature = slider(gradio, "temperature", name, limits.TEMPERATURES, TEMPERATURE, 0.05, cold, **hidden)
    more = "Coalitions of words: more make standard errors smaller."
    samples = slider(gradio, "samples", "Samples", limits.SAMPLES, SAMPLES, 64, more, **hidden)
    return switch, temperature, samples
