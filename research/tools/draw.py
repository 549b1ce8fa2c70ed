"""Draw the pictures of README and docs: explanations by the small classifier, restored digits, and results.

python -m research.tools.draw

Figures 1 and 2 of the attractor paper come from `spinformer reproduce attractor`, pictures of the web page from
`python -m research.tools.screenshots`.
"""

import sys
from pathlib import Path

from research.paths import DOCS, RESULTS, ROOT
from research.reports.documents import draw_figures
from research.reports.exactness import PREFIX

FIGURES = DOCS / "figures"
PAIR = ("A man sleeps.", "Nobody is awake.")
OVERVIEW = 200  # pairs of the sample
DIGITS, SHOWN = 4000, 4


def draw_explanations(folder: Path) -> list[Path]:
    """The pair of README as arcs, waterfall, force and spins that settle; and the words of each class."""
    from spinformer import Explainer, ExplanationSet
    from spinformer.data import load_texts
    from spinformer.explain.dynamics import trace_spins
    from spinformer.explain.render import figures

    explainer = Explainer.from_pretrained("small", device="cpu")
    explanation, paths = explainer(*PAIR), []
    for kind in ("arcs", "waterfall", "force"):
        paths.append(folder / f"explanation-{kind}.svg")
        explanation.plot(kind, paths[-1])
    paths.append(folder / "layer-spins.svg")
    figures.save_figure(figures.convergence_figure(trace_spins(explainer, *PAIR)), paths[-1])
    pairs = load_texts("sample:test").select(range(OVERVIEW))
    paths.append(folder / "overview-classes.svg")
    ExplanationSet(explainer(list(pairs.first), list(pairs.second or ()))).plot("classes", paths[-1])
    return paths


def draw_digits(path: Path) -> Path:
    """Digits of MNIST with hidden parts, which the attractor network of the demo restores."""
    from dataclasses import replace

    import torch

    from spinformer.data.corruption import corrupt
    from spinformer.data.images import load_images
    from spinformer.evaluate.images import trajectory
    from spinformer.models import AttractorNetwork
    from spinformer.training.attractor import preset, train_attractor

    digits = load_images("sample").cut(DIGITS)
    config, recipe = preset("field", patch=2, image=digits.shape)
    network = AttractorNetwork(config)
    train_attractor(network, digits.train, replace(recipe, epochs=4))
    generator = torch.Generator().manual_seed(0)
    corrupted = corrupt(digits.test[:SHOWN], "masked", network.embedding, generator=generator)
    trajectory.save_sheet(trajectory.follow(network, corrupted, 2, pin=True), corrupted, path)
    return path


def main() -> int:
    """Draw all of them, and say where they are."""
    made = draw_figures(RESULTS)
    digits = draw_digits(FIGURES / "attractor-digits.png")
    for path in (*draw_explanations(FIGURES), digits, *made):
        print(f"drawn: {path.relative_to(ROOT)}")
    if not made:
        print(f"no result named {PREFIX}*.json in {RESULTS.name}/", file=sys.stderr)
    return int(not made)


if __name__ == "__main__":
    sys.exit(main())
