"""A canvas of 28 by 28 pixels on which visitors draw a digit with a mouse, a finger or the arrow keys.

The pixels stay in the browser until a request sends them as hexadecimal digits: nothing is uploaded as a file.
"""

from collections.abc import Sequence
from typing import Any

from spinformer.app.limits import SIDE
from spinformer.app.style import asset

# Runs in the browser before a request: sends the canvas's pixels instead of the component's own value.
READ_PIXELS = "(pad, ...rest) => [document.querySelector('#pad canvas.drawing').dataset.code, ...rest]"


def pad(gradio: Any, examples: Sequence[str]) -> Any:
    """The Gradio component; examples: pixels of the digits 0, 1, ... to choose from, in hexadecimal."""
    buttons = "".join(
        f'<button type="button" data-code="{code}" aria-label="digit {digit}">'
        f'<canvas width="{SIDE}" height="{SIDE}" aria-hidden="true"></canvas></button>'
        for digit, code in enumerate(examples)
    )
    template = (
        f'<div class="choices" role="group" aria-label="Digits">{buttons}</div>'
        f'<div class="board"><canvas class="drawing" width="{10 * SIDE}" height="{10 * SIDE}" tabindex="0" role="img" '
        'aria-label="Drawing. Arrow keys move the pen, space draws, backspace clears a pixel."></canvas>'
        '<button type="button" class="clear">Clear</button></div>'
    )
    return gradio.HTML(
        "", html_template=template, js_on_load=asset("pad.js"), elem_id="pad", label="Picture", apply_default_css=False
    )
