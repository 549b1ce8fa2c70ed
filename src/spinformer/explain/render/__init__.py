"""Drawings of explanations: lines for a terminal, HTML, SVG, and figures by matplotlib.

`layout` chooses what is shown, the other modules paint it. They read the records in `spinformer.explain.record` and
`spinformer.explain.traces`, and estimate nothing.
"""
