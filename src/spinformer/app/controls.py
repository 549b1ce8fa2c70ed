"""What the tabs of the page share: sliders, the choice of classes, options of a request, answers that never fail."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from spinformer.app import limits, markup
from spinformer.app.classifier import Tell
from spinformer.app.task import Task
from spinformer.explain.render.characters import capitalize

# One refinement or file is worked on at a time, beside the short requests.
LONG = "long"
log = logging.getLogger(__name__)


class VisitorLeftError(Exception):
    """Nobody waits for the answer."""


def request_options(name: str, at_once: int, *, status: Any = None) -> dict[str, Any]:
    """Options of a request: at most `at_once` run at a time, a visitor's last one wins, the API does not list it.

    status: of a request that takes longer than others, and waits apart from them, the component on which it shows how
    far it is. Values come as they were sent: the function checks them. Gradio would print a traceback of each that it
    refuses.
    """
    long = status is not None
    return {
        "preprocess": False,
        "api_name": name,
        "api_visibility": "private",
        "concurrency_id": LONG if long else name,
        "concurrency_limit": at_once,
        "show_progress": "full" if long else "minimal",
        "show_progress_on": status,
        "trigger_mode": "once" if long else "always_last",
    }


def show(result: str) -> str:
    """JavaScript that scrolls to the result where the page is narrow and the result is below the buttons."""
    return f"() => {{ innerWidth < 700 && document.getElementById('{result}').scrollIntoView(); }}"


def slider(
    gradio: Any,
    name: str,
    label: str,
    bounds: tuple[float, float],
    value: float,
    step: float,
    info: str | None = None,
    **options: Any,
) -> Any:
    """A slider whose element has the id `name`."""
    return gradio.Slider(*bounds, value=value, step=step, label=label, info=info, elem_id=name, **options)


def class_choice(gradio: Any, task: Task, name: str) -> tuple[Any, Any]:
    """Two lists: why this class, and not that one. Both are hidden where there is nothing to choose from."""
    several = len(task.names) > 1
    with gradio.Row(elem_classes="classes", visible=several):
        target = gradio.Dropdown(
            [(capitalize(task.decision), -1), *task.choices],
            value=-1,
            label="Why",
            filterable=False,
            elem_id=f"{name}-target",
            min_width=120,
        )
        against = gradio.Dropdown(
            [("all others", -1), *task.choices],
            value=-1,
            label="and not",
            filterable=False,
            elem_id=f"{name}-against",
            min_width=120,
        )
    return target, against


def status_line(gradio: Any, name: str) -> Any:
    """Where a long request shows how far it is."""
    return gradio.HTML("", elem_id=name, elem_classes="status")


def telling(gradio: Any, progress: Any, unit: str) -> Tell:
    """What tells a visitor how far the work is, and ends it once nobody waits for it. unit: what is counted."""
    context = gradio.context.LocalContext
    blocks, request = context.blocks.get(None), context.event_id.get(None)

    def tell(done: int, total: int) -> None:
        event = None if blocks is None else blocks._queue.event_ids_to_events.get(request)
        if event is not None and not event.alive:
            raise VisitorLeftError
        progress(done / total, desc=f"{done:,} of {total:,} {unit}")

    return tell


def guarded(answer: Callable[..., str]) -> Callable[..., str]:
    """`answer`, with errors of the visitor shown as a message; any other is logged, and the visitor gets no details."""

    @wraps(answer)
    def safe(*values: object) -> str:
        try:
            return answer(*values)
        except ValueError as error:
            return markup.message_html(str(error))
        except VisitorLeftError:
            return markup.message_html("Nobody waited for this answer.")
        except Exception:
            log.exception("a request failed")
            return markup.message_html("Something went wrong on the server. Please try another input.")

    return safe


def check_passes() -> list[tuple[str, int]]:
    """The numbers of passes to choose from."""
    return [(f"{count:,}", count) for count in limits.PASSES]
