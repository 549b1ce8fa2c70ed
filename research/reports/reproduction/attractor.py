"""The attractor paper in its order: equations, claims, figures."""

from research.reports.markdown import Record
from research.reports.reproduction.entry import Entry, Section, equation, untested
from research.reports.reproduction.judges import network

GRADIENT = "tests/attractor/test_gradient.py"
TWINS = f"{GRADIENT}::test_energies_and_steps_equal_their_plain_twins"
CLAIMS = "tests/research/test_attractor_claims.py"
FIGURES = ("research/experiments/attractor_figures.py",)
JUDGED = ("research/experiments/attractor_claims.py",)
ENERGY = "spinformer.attractor.energy"


def _att(number: str, claim: str, code: str, test: str, note: str = "") -> Entry:
    return equation("att", number, claim, code, test, note=note)


def _one_seed(outcome: Record) -> str:
    return "Block and vision transformer have one seed."


MODEL = Section(
    "II: the model",
    (
        _att("1", "Dynamics of vector spins: attention, couplings, inertia γ.", f"{ENERGY}:step", TWINS),
        _att("2", "Attention α_{i←j}: softmax of x_i J_ij x_j.", f"{ENERGY}:attention", TWINS),
        _att("3", "A step is minus the derivative of each spin's own energy, plus γ x_i.", f"{ENERGY}:step",
             f"{GRADIENT}::test_step_is_minus_the_gradient_of_the_local_energy"),
        _att("4", "Local energy e_i = -log Σ_{j≠i} exp(x_i J_ij x_j).", f"{ENERGY}:local_energy", TWINS),
        _att("5", "Self-attention is such a step if its values use the couplings of its scores, W_V = J.",
             "spinformer.attractor.shared:SharedCouplings",
             f"{GRADIENT}::test_step_is_minus_the_gradient_of_the_local_energy",
             "One J for all pairs of tokens, and without the token itself (j ≠ i)."),
        _att("6", "Energy E = Σ_i e_i.", "spinformer.attention.attractor:AttractorAttention", TWINS),
        _att("7", "Loss: the energy of the training examples. Its gradient is closed and local.",
             "spinformer.attractor.gradient:energy_gradient", f"{GRADIENT}::test_coupling_gradient_is_autograds"),
        Entry(
            "att-no-backpropagation", "abstract; sections I, II-B, II-C",
            "Training needs no backpropagation and is fast.",
            network.fast, ("attractor-speed-gpu",),
            "as many steps as the paper's training has take less than ten minutes",
            ("spinformer.attractor.gradient:energy_gradient",), (f"{GRADIENT}::test_coupling_gradient_is_autograds",),
        ),
        Entry(
            "att-asymmetric", "section II-C", "Couplings that minimise the loss are in general not symmetric.",
            network.asymmetric, ("theory",), "|J_ij - J_ji'| is above a tenth of |J|",
            ("spinformer.training.attractor.train:train_attractor",),
            ("tests/attractor/test_training.py::test_the_norm_is_held_and_the_energy_falls",),
        ),
    ),
)  # fmt: skip

RESULTS = Section(
    "III: results",
    (
        Entry(
            "att-figure-1", "Figure 1",
            "There is a best number of iterations, after which the error grows: test examples are transient states.",
            network.masked_claims("error grows after its least (masked)", "error grows after its least (noisy)"),
            ("attractor",), "in both tasks and for every seed the last error is 2% or more above the least",
            (*FIGURES, "docs/figures/attractor-figure-1.png"), (f"{CLAIMS}::test_every_claim_can_be_false",),
            headline=True,
        ),
        Entry(
            "att-figure-1-block", "Figure 1", "The same of the repeated transformer block.",
            network.block(
                "error grows after its least (masked, recurrent block)",
                "error grows after its least (noisy, recurrent block)",
            ),
            ("attractor",), "in both tasks the last error is 2% or more above the least, after 100 epochs",
            (*FIGURES, "docs/figures/attractor-figure-1.png"), (f"{CLAIMS}::test_every_claim_can_be_false",),
        ),
        Entry(
            "att-masked-first", "section III", "Masked prediction is best after one iteration.",
            network.masked_claims("masked prediction is best in the first steps"), ("attractor",),
            "it is best after one or two, for every seed", JUDGED, (f"{CLAIMS}::test_every_claim_can_be_false",),
            headline=True,
        ),
        Entry(
            "att-noisy-several", "section III",
            "A weaker form of the next row: denoising is best after three iterations or more.",
            network.claims("denoising is best after several steps"), ("attractor",),
            "it is best after three or more, with an error below the noisy image's, for every seed", JUDGED,
            (f"{CLAIMS}::test_every_claim_can_be_false",),
        ),
        Entry(
            "att-noisy-ten", "section III", "Denoising needs around ten iterations.",
            network.around_ten, ("attractor",),
            "it is best after 7 to 13, for every seed, with 2 x 2 patches as in the paper's Figure 1; with conditions "
            "if with 4 x 4 patches", JUDGED, (f"{CLAIMS}::test_every_claim_can_be_true",),
            headline=True,
        ),
        Entry(
            "att-block-steps", "section III", "The block predicts well after 3 to 7 iterations, as it was trained.",
            network.block(
                "recurrent block is best after 3 to 7 repetitions (masked)",
                "recurrent block is best after 3 to 7 repetitions (noisy)",
            ),
            ("attractor",), "its least error is there, in both tasks, after 100 epochs", JUDGED,
            (f"{CLAIMS}::test_every_claim_can_be_true",),
        ),
        Entry(
            "att-order", "section III",
            "The vision transformer predicts best, then the block, then the bare layer.",
            network.claims(
                "ViT better than recurrent block better than bare layer (masked)",
                "ViT better than recurrent block better than bare layer (noisy)",
                note=_one_seed,
            ),
            ("attractor",), "least errors have this order, in both tasks and for every seed", JUDGED,
            (f"{CLAIMS}::test_every_claim_can_be_false",),
        ),
        Entry(
            "att-global-attractor", "section III", "There is one global attractor, whatever the task and the start.",
            network.claims("states from different images end near one attractor", "both tasks have the same attractor"),
            ("attractor",),
            "after 200 steps the variance over images is below a tenth of the images', and both tasks end in the same",
            JUDGED,
            (f"{CLAIMS}::test_every_claim_can_be_false",), headline=True,
        ),
        Entry(
            "att-mean-digit", "section III", "The attractor resembles the average of all digits.",
            network.claims("the attractor resembles the mean digit"), ("attractor",), "their correlation is above 0.8",
            JUDGED, (f"{CLAIMS}::test_every_claim_can_be_false",), headline=True,
        ),
        Entry(
            "att-patches", "section III", "The bare layer works best with 2 x 2 patches.",
            network.claims(
                "bare layer works better with 2 x 2 than with 4 x 4 patches (masked)",
                "bare layer works better with 2 x 2 than with 4 x 4 patches (noisy)",
                note=network.level_patches,
            ),
            ("attractor",), "its least error is below that with 4 x 4, in both tasks and for every seed", JUDGED,
            (f"{CLAIMS}::test_every_claim_can_be_true",),
        ),
        Entry(
            "att-patches-block", "section III", "The block works better with 4 x 4 patches.",
            network.block(
                "recurrent block works better with 4 x 4 than with 2 x 2 patches (masked)",
                "recurrent block works better with 4 x 4 than with 2 x 2 patches (noisy)",
                key="pair", note="Hidden 2 x 2 patches are the easier task.",
            ),
            ("attractor",), "its least error is below that with 2 x 2, in both tasks, after 100 epochs", JUDGED,
            (f"{CLAIMS}::test_every_claim_can_be_true",),
        ),
        Entry(
            "att-figure-2", "Figure 2",
            "Predicted patches are the more uniform the simpler the model is.",
            network.claims("variance within patches in the same order", note=_one_seed), ("attractor",),
            "the mean variance within hidden patches falls from vision transformer to block to bare layer",
            (*FIGURES, "docs/figures/attractor-figure-2.png"),
            (f"{CLAIMS}::test_every_claim_can_be_false",), headline=True,
        ),
        untested(
            "att-perceptron", "section III", "The perceptron of the block modulates the signal within patches.",
            "No two models differ in the perceptron alone.",
        ),
    ),
)  # fmt: skip

DISCUSSION = Section(
    "IV: conclusions",
    (
        Entry(
            "att-memories", "abstract; section IV",
            "Transient states are strongly correlated with training and with test examples.", network.stores,
            ("attractor",), "hidden tokens come closer to the true ones than the mean spin of each site does, and "
            "denoised images are closer to the true ones than the mean image is; with conditions if one of both is so",
            ("research/experiments/attractor_measures.py",), ("tests/research/test_attractor_figures.py",),
            headline=True,
        ),
        Entry(
            "att-task-agnostic", "section IV",
            "Training that knows no task serves both tasks (the paper: with similar attractors and transient states).",
            network.task_agnostic, ("attractor",),
            "hidden patches are predicted better than by the mean image, and noise is reduced; with conditions if in "
            "one reading of the norm, or if only noise is reduced",
            ("spinformer.training.attractor.train:train_attractor",),
            (f"{CLAIMS}::test_use_beside_trivial_predictors",),
        ),
        untested(
            "att-pseudo-likelihood", "abstract; sections II-C, IV", "The local energies resemble a pseudo-likelihood.",
            "A matter of form: e_i is the energy of a site given the others, without the partition function that a "
            "pseudo-likelihood has. The setting `field` keeps it.",
        ),
        untested(
            "att-theory", "section IV", "The simplicity of the model may make it tractable for theory.",
            "No measurement is named.",
        ),
    ),
)  # fmt: skip

APPENDIX = Section(
    "V: architecture and training",
    (
        Entry(
            "att-embedding", "section V-A",
            "The embedding can be inverted, and its scale makes scores independent of d and a.", network.invertible,
            ("theory",), "pixels come back, and all spins have length 1, to 1e-5",
            ("spinformer.attractor.embedding:PatchEmbedding",), (f"{GRADIENT}::test_the_embedding_returns_the_image",),
        ),
        Entry(
            "att-norm", "section V-B", "Without a constant norm the energy falls by scaling the couplings alone.",
            network.norm_lowers, ("theory",), "it falls with each factor", (f"{ENERGY}:local_energy",),
            ("tests/attractor/test_training.py::test_the_norm_is_held_and_the_energy_falls",),
        ),
        Entry(
            "att-lambda", "section V-B", "λ = 5 in training and λ = 1 in testing give the best results.",
            network.best_strengths, ("attractor-strengths",),
            "they have the least error of all that were tried, in both tasks and with both norms, on held-out digits, "
            "2 x 2 patches; with conditions if in one task or with one norm",
            ("research/experiments/attractor_strengths.py",), ("tests/research/test_attractor_sweep.py",),
        ),
        _att("8-9", "Transformer block: attention and perceptron, each after a layer norm and with a skip.",
             "spinformer.models.attractor.transformer:Block",
             "tests/attractor/test_backprop.py::test_the_block_is_repeated_and_its_trajectory_ends_where_forward_does",
             "The skeleton of the block; its attention is ordinary ([baselines](#contradiction-att-baselines))."),
    ),
)  # fmt: skip

SECTIONS = (MODEL, RESULTS, DISCUSSION, APPENDIX)
