"""The third tab: a damaged digit, and the attractor network that restores it."""

from typing import Any

from spinformer.app import film, limits
from spinformer.app.controls import guarded, request_options, show, slider
from spinformer.app.digits import STRENGTH, STRENGTHS, Digits
from spinformer.app.pad import READ_PIXELS, pad

INTRODUCTION = (
    "Self-attention as the descent of a local energy. The network is trained here, at the first request, on a few "
    "thousand digits, without backpropagation. Choose a digit or draw one, damage it, and watch it being restored."
)


def attractor_tab(gradio: Any, digits: Digits) -> None:
    """Add the tab's controls and what they do."""
    with gradio.Row(elem_classes="columns"):
        with gradio.Column(scale=2, min_width=300):
            gradio.HTML(f'<p class="lead">{INTRODUCTION}</p>')
            picture = pad(gradio, digits.examples())
            kind = gradio.Radio(list(limits.DAMAGES), value="hide patches", label="Damage", elem_id="damage")
            info = f"Share of hidden patches (up to {limits.DAMAGES['hide patches']:g}), or variance of the noise."
            amount = slider(gradio, "amount", "Amount", (0, max(limits.DAMAGES.values())), 0.4, 0.05, info)
            button = gradio.Button("Restore", variant="primary", elem_id="restore")
            steps = slider(gradio, "steps", "Steps", limits.STEPS, 6, 1)
            strength = slider(gradio, "strength", "Strength λ of the attention", STRENGTHS, STRENGTH, 0.05)
            seed = gradio.Number(0, label="Seed of the damage", precision=0, minimum=0, maximum=limits.SEEDS)
        with gradio.Column(scale=3, min_width=300):
            result = gradio.HTML('<p class="lead">The trajectory will be shown here.</p>', elem_id="trajectory")
    answer = guarded(lambda *values: film.film_html(digits.watch(*values)))
    inputs = [picture, kind, amount, steps, strength, seed]
    options = request_options("watch", 1)
    request = button.click(answer, inputs, result, js=READ_PIXELS, **options)
    request.then(None, js=show("trajectory"), api_visibility="private")
    gradio.on([steps.release, strength.release, amount.release], answer, inputs, result, js=READ_PIXELS, **options)
