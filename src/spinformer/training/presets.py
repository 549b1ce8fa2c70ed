"""Settings of the attractor network on images, each a network and how to train it.

`paper`: unit spins, γ = 1, λ = 5 in training and 1 in testing, norm held, 20 epochs of batch 32.
`notebook`: the released notebook's normalisation, each component standardised over the tokens.
`field`: the setting that is of use: centred spins of small radius, trained as a pseudo-likelihood that keeps
its partition function (see `spinformer.attractor.gradient`).
"""

from dataclasses import replace

from spinformer.models.vision.attractor import AttractorConfig
from spinformer.training.pseudolikelihood import Recipe

PRESETS: dict[str, tuple[AttractorConfig, Recipe]] = {
    "paper": (AttractorConfig(), Recipe()),
    "notebook": (
        AttractorConfig(normalisation="standard", strength=0.5),
        Recipe(strength=1.0, rate=5e-4, clip=1.0),
    ),
    "field": (
        AttractorConfig(normalisation="none", inertia=0.0, radius=0.01),
        Recipe(
            objective="field",
            strength=1.0,
            epochs=20,
            rate=0.1,
            decay="linear",
            clip=None,
            hold=None,
            hidden=0.3,
        ),
    ),
}


def preset(
    name: str, *, patch: int = 2, image: tuple[int, int, int] = (1, 28, 28), seed: int = 0
) -> tuple[AttractorConfig, Recipe]:
    """The named setting for images and patches of another size."""
    if name not in PRESETS:
        raise ValueError(f"preset is one of {', '.join(PRESETS)}; got {name!r}")
    config, recipe = PRESETS[name]
    return replace(config, patch=patch, image=image, seed=seed), replace(recipe, seed=seed)
