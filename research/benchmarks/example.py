"""The worked example of section 5 of the NeuroGame paper: figures from its equations, beside what it prints."""

from typing import Any

from spinformer.attention.worked_example import worked_example

# From an independent calculation, to four decimals.
FIXED_POINT = (0.7858, 0.8587, 0.7599)
MARGINALS = (0.7178, 0.7942, 0.7087)


def run(seed: int = 0) -> dict[str, Any]:
    """All figures, those printed, and whether they agree; nothing here is random."""
    figures = worked_example()
    by_name = {figure.name: figure for figure in figures}

    def close(name: str, numbers: tuple[float, ...]) -> bool:
        return all(abs(a - b) < 6e-5 for a, b in zip(by_name[name].computed, numbers, strict=True))

    rows = [{"name": f.name, "computed": f.computed, "printed": f.printed, "agrees": f.agrees} for f in figures]
    return {
        "rows": rows,
        "disagreements": [row["name"] for row in rows if row["agrees"] is False],
        "passed": close("spins at the fixed point", FIXED_POINT) and close("exact marginals of the spins", MARGINALS),
    }
