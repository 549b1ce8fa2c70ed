"""Settings of the attractor network on images by name: a network and how to train it.

`paper`: unit spins, γ = 1, λ = 5 in training and 1 in testing, constant norm, 20 epochs of batch 32 (ATT section V-B).
The paper names stochastic gradient descent, without a rate; ours, "power", reaches the minimum that the constant norm
allows.
`notebook`: the normalisation of the released notebook, each component standardised over the tokens.
`field`: the setting that works best: centred spins of small radius, trained as a pseudo-likelihood that keeps its
partition function (see `spinformer.attractor.gradient`).
"""

from dataclasses import replace

from spinformer.models.attractor.network import AttractorConfig
from spinformer.training.attractor.pseudolikelihood import AttractorRecipe

PRESETS: dict[str, tuple[AttractorConfig, AttractorRecipe]] = {
    "paper": (AttractorConfig(), AttractorRecipe()),
    "notebook": (
        AttractorConfig(normalisation="standard", strength=0.5),
        AttractorRecipe(strength=1.0, optimiser="adam", rate=5e-4, decay="constant", clip=1.0),
    ),
    "field": (
        AttractorConfig(normalisation="none", inertia=0.0, radius=0.01),
        AttractorRecipe(
            objective="field",
            strength=1.0,
            epochs=20,
            optimiser="adam",
            rate=0.1,
            hold=None,
            hidden=0.3,
        ),
    ),
}


def preset(
    name: str, *, patch: int = 2, image: tuple[int, int, int] = (1, 28, 28), seed: int = 0
) -> tuple[AttractorConfig, AttractorRecipe]:
    """The network and the recipe of this name, for images and patches of this size."""
    if name not in PRESETS:
        raise ValueError(f"preset is one of {', '.join(PRESETS)}; got {name!r}")
    config, recipe = PRESETS[name]
    return replace(config, patch=patch, image=image, seed=seed), replace(recipe, seed=seed)
