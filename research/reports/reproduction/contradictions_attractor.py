"""Where the attractor paper contradicts itself or the authors' notebook, in the order of its sections."""

from research.reports.reproduction.contradiction import Contradiction, Option

CONTRADICTIONS = (
    Contradiction(
        "contradiction-att-norm", "normalisation of spins",
        "section II-A: spins on a sphere of radius 1",
        "section V-A: “layer-normalization, as described in [1]”, which subtracts a mean and divides by a deviation",
        "Each spin is divided by its length, as section II-A says.",
        "Each component is standardised over the tokens, inside of the step only (over the visible ones at the first "
        "masked step).",
        (Option("network", {"normalisation": "layer"}), Option("network", {"normalisation": "standard"})),
    ),
    Contradiction(
        "contradiction-att-gamma", "inertia",
        "section II-A: x' = r + γ x with γ = 1",
        "the notebook: another step",
        "As in the paper.",
        "x + (1 - g) r with g = 0.5.",
        (Option("network", {"strength": 0.5, "inertia": 1.0}),),
    ),
    Contradiction(
        "contradiction-att-self", "the token itself",
        "Eq. 5: self-attention, with a sum over j ≠ i",
        "[1], which it quotes: the sum includes j = i",
        "j ≠ i, with J_ii = 0.",
        otherwise="no option",
    ),
    Contradiction(
        "contradiction-att-optimiser", "optimiser",
        "section II-C: “stochastic gradient descent”; no rate is given",
        "the notebook: another optimiser",
        "Steps of fixed length along the gradient on the sphere of constant norm (`power`), which come to rest at the "
        "minimum.",
        "AdamW with rate 5e-4, halved every 10 epochs.",
        (Option("training", {"optimiser": "sgd"}), Option("training", {"optimiser": "adam", "rate": 5e-4})),
    ),
    Contradiction(
        "contradiction-att-sites", "what a training step trains",
        "Eq. 7: the energy of all sites",
        "the notebook: fewer",
        "All sites in each step; the closed gradient makes it cheap.",
        "One random site for each step.",
        (Option("training", {"sites": 1}),),
    ),
    Contradiction(
        "contradiction-att-data", "images, batch, epochs",
        "sections III, V-B: 50,000 images, batch 32, 20 epochs",
        "the notebook: fewer images, larger batches",
        "As in the paper.",
        "10,000 images, batch 256.",
        (Option("training", {"batch": 256}),),
    ),
    Contradiction(
        "contradiction-att-masked", "what is masked",
        "section III: a fraction of the tokens is set to zero",
        "Figure 1, caption: “we masked 30% of the pixels”",
        "30% of the tokens, so whole patches.",
        otherwise="no option",
    ),
    Contradiction(
        "contradiction-att-time", "how steps are counted",
        "Figure 1, masked: t = 1 is after the first iteration",
        "Figure 1, noisy: t = 1 is the corrupted image, t = 2 after the first iteration",
        "t counts iterations in both tasks; t = 0 is the image as it is given.",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-att-width", "width d",
        "section V-A: d ≥ 2a, “to overparametrize the model”",
        "the notebook: no overparametrisation",
        "d = 2a, the smallest; larger ones are an option.",
        "d = 8 = 2a for 2 x 2 patches.",
        (Option("network", {"dim": 16}),),
    ),
    Contradiction(
        "contradiction-att-cost", "the cost",
        "section V-B: “the cost function in Eq. 4”, e_i of one token",
        "section II-C: the loss is Eq. 7, the sum of all e_i over all examples",
        "Eq. 7.",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-att-initial", "initial couplings",
        "section V-B: in ±1/(2d), the distribution not said",
        "the notebook: smaller",
        "Uniform in ±1/(2d).",
        "Uniform in ±1/(2d²).",
        otherwise="no option: the norm, which is held, follows from it",
    ),
    Contradiction(
        "contradiction-att-held", "which norm is held",
        "sections II-C, V-B: “the norm of J_ij”, “the L2 norm of the matrix is kept fixed”",
        "the notebook: another norm",
        "In `paper` the norm of all couplings of a site, which is our choice: a site can then choose which others it "
        "listens to. The paper's own is an option, and judged beside it.",
        "The root mean square of all couplings together.",
        (Option("training", {"hold": "pair"}),),
    ),
    Contradiction(
        "contradiction-att-lambda", "λ",
        "section V-B: λ = 5 in training, 1 in testing",
        "the notebook: no λ in the scores",
        "5 and 1 in the setting `paper`.",
        "No λ.",
        (Option("training", {"strength": 1.0}),),
    ),
    Contradiction(
        "contradiction-att-clip", "clipping",
        "section V-B: a maximum of the gradients' norm, not named",
        "the notebook: two bounds",
        "None is needed: steps have a fixed length.",
        "Gradients clipped at 1, scores clamped at 20.",
        (Option("training", {"optimiser": "adam", "rate": 5e-4, "clip": 1.0}), Option("network", {"clamp": 20.0})),
    ),
    Contradiction(
        "contradiction-att-baselines", "baselines",
        "section V-C: precise values “can be found in the code”",
        "the notebook of the two baselines is empty",
        "After the paper's description, with ordinary attention (j = i included, scaled scores) and choices of our "
        "own: width 128, 4 heads, AdamW at 1e-3.",
        "Empty.",
        otherwise="`spinformer.models.attractor.transformer`",
    ),
)  # fmt: skip
