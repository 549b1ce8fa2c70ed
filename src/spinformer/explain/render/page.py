"""The frame of every HTML page: one file that fetches nothing and runs nothing.

Its Content-Security-Policy allows nothing but the page's own style sheet, by its digest.
"""

import base64
import hashlib

from spinformer.explain.render.markup import escape, isolate
from spinformer.explain.render.style import STYLE


def html_page(title: str, header: str, main: str) -> str:
    """A document with this title; header: what stands below it, main: the sections, both as HTML."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{isolate(title)}</h1>
{header}</header>
<main>
{main}
</main>
</body>
</html>
"""


def embedded_page(page: str, title: str) -> str:
    """A page in a frame, for notebooks: its style sheet and theirs do not mix, and nothing in it can run."""
    size = "width:100%;height:40rem;border:0;resize:vertical"
    return f'<iframe sandbox srcdoc="{escape(page)}" title="{escape(title)}" style="{size}"></iframe>'
