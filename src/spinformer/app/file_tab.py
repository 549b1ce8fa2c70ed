"""The second tab: a file of texts, and what the classifier relies on in them.

The browser reads the file and sends it in the request, as the drawing of a digit: there is no route for uploads.
"""

from typing import Any

from spinformer.app import limits
from spinformer.app.classifier import Classifier
from spinformer.app.controls import class_choice, guarded, request_options, show, status_line, telling
from spinformer.app.file_markup import file_html
from spinformer.app.style import asset
from spinformer.app.task import Task
from spinformer.app.uploads import LINES, TABLES
from spinformer.data.columns import PAIRS, SINGLES

# Runs in the browser before a request: sends the file instead of the component's own value.
READ_FILE = "(file, ...rest) => [document.querySelector('#file .drop').content || '', ...rest]"


def file_tab(gradio: Any, classifier: Classifier) -> None:
    """Add the tab's controls and what they do."""
    task = classifier.task
    with gradio.Row(elem_classes="columns"):
        with gradio.Column(scale=2, min_width=300):
            gradio.HTML(f'<p class="lead">{_introduction()}</p>')
            file = _drop(gradio)
            target, against = class_choice(gradio, task, "file")
            button = gradio.Button("Explain the file", variant="primary", elem_id="explain-file")
            status = status_line(gradio, "file-status")
            gradio.HTML(f'<div class="formats">{_formats(task)}</div>')
        with gradio.Column(scale=3, min_width=300):
            result = gradio.HTML('<p class="lead">The overview will be shown here.</p>', elem_id="overview")
    progress = gradio.Progress()

    def explained(value: object, target: object, against: object, progress: Any = progress) -> str:
        tell = telling(gradio, progress, "rows explained")
        return file_html(classifier.explain_file(value, target, against, tell))

    options = request_options("file", 1, status=status)
    request = button.click(guarded(explained), [file, target, against], result, js=READ_FILE, **options)
    request.then(None, js=show("overview"), api_visibility="private")


def _introduction() -> str:
    return (
        "What does the classifier rely on, in all of your texts? You see the words that matter most, class by class, "
        "and the texts whose reasons are unusual. Take the overview and the table with you."
    )


def _drop(gradio: Any) -> Any:
    """Where a file is chosen or dropped."""
    endings = (*TABLES, *LINES)
    template = (
        f'<label class="drop" data-limit="{limits.FILE_BYTES}"><input type="file" accept="{",".join(endings)}">'
        '<span class="name">Choose a file, or drop it here</span>'
        f'<span class="said">{", ".join(endings)}; at most {limits.FILE_BYTES // 1024} KB</span></label>'
    )
    return gradio.HTML(
        "", html_template=template, js_on_load=asset("file.js"), elem_id="file", label="File", apply_default_css=False
    )


def _formats(task: Task) -> str:
    """What a file must look like for this classifier."""
    if task.paired:
        columns = " or ".join(f"<code>{first}</code> and <code>{second}</code>" for first, second in PAIRS[:3])
        table, line = f"two columns: {columns}", "both texts with a tab between"
    else:
        columns = ", ".join(f"<code>{name}</code>" for name in SINGLES[:4])
        table, line = f"a column with the texts: {columns}", "a text"
    return (
        f"<p>A table (.csv, .tsv) or JSON lines (.jsonl) with {table}. Other columns are not read. Or a .txt with "
        f"{line} on each line.</p><p>At most {limits.ROWS} rows, each of at most {limits.EACH}, and "
        f"{limits.FILE_SECONDS:g} seconds. The file stays in memory, and is forgotten with the answer.</p>"
    )
