"""The explanations of a file as HTML: the overview of the set in a frame where nothing can run, and files to take."""

from spinformer.app.classifier import ExplainedFile
from spinformer.app.downloads import links, set_files
from spinformer.explain.render.markup import isolate
from spinformer.explain.render.overview_html import TITLE
from spinformer.explain.render.page import embedded_page


def file_html(file: ExplainedFile) -> str:
    """All that the page shows of a file."""
    count = len(file.explained)
    page = file.explained.to_html(title=f"{TITLE}: {file.name}")
    notes = "".join(f"<p><strong>Note:</strong> {isolate(note)}</p>" for note in file.notes)
    box = f'<div class="note" role="note">{notes}</div>' if notes else ""
    heading = f"{isolate(file.name)} <small>{count:,} {'row' if count == 1 else 'rows'} explained</small>"
    return (
        f'<div class="result" aria-live="polite">{box}<section class="card"><h2 class="decision">{heading}</h2>'
        f"{links(set_files(file.explained, page))}</section>"
        f'<div class="overview">{embedded_page(page, TITLE)}</div></div>'
    )
