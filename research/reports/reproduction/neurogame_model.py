"""The NeuroGame paper from its abstract to section 3: claims and equations of the model, in its order."""

from research.reports.reproduction.entry import Entry, Section, equation, untested
from research.reports.reproduction.judges import classifiers, games, layer, printed, spins

EXACT = "tests/games/test_exact.py"
ISING = "tests/ising/test_model.py"
LAYER = "tests/attention/test_neurogame.py"
EQUATION_CODE = {
    "game": "spinformer.games.game:Game",
    "exact": "spinformer.games.exact:exact_values",
    "ising": "spinformer.ising.model:Ising",
    "layer": "spinformer.attention.neurogame:NeuroGameAttention",
}


def _ngt(number: str, claim: str, code: str, test: str, note: str = "") -> Entry:
    return equation("ngt", number, claim, EQUATION_CODE.get(code, code), test, note=note)


ABSTRACT = Section(
    "Abstract and introduction",
    (
        Entry(
            "ngt-albert", "abstract", "On SNLI it surpasses ALBERT-Base.", printed.surpasses_albert,
            criterion="every number that is given for NGT is above ALBERT-Base's",
        ),
        Entry(
            "ngt-roberta", "abstract", "On SNLI it is highly competitive with RoBERTa-Base.",
            printed.competitive_with_roberta, criterion="it is at most a point below",
        ),
        Entry(
            "ngt-outperforms", "section 1",
            "It outperforms standard and efficient transformer baselines on natural language inference.",
            printed.outperforms_transformers, criterion="it is above all transformers of Table 5, on both sets",
            headline=True,
        ),
        Entry(
            "ngt-higher-order", "abstract; sections 1, 2.4", "It models dependencies of higher order than pairs.",
            games.higher_order, ("theory",), "three tokens or more account for 1% of the variance of v",
            ("spinformer.games.norm:NormGame",), ("tests/games/test_game.py::test_value_is_the_length_of_the_sum",),
            headline=True,
        ),
        Entry(
            "ngt-trade-off", "abstract",
            "λ matters to the accuracy (the paper: it governs a trade-off of fairness and sensitivity).",
            classifiers.changed("lambda-0", "lambda-1", text="λ = 0 is Banzhaf alone, λ = 1 Shapley alone."),
            ("nli-ablations",), "a fixed λ moves the accuracy by more than seeds do",
            ("research/experiments/nli_paper.py",), ("tests/attention/test_ablations.py::test_a_fixed_gate",),
        ),
        Entry(
            "ngt-linear", "sections 1, 4.3; Table 2",
            "The estimators have linear complexity O(K n) instead of O(2^n).", games.linear_complexity, ("theory",),
            "evaluations of v double when n doubles", ("spinformer.attention.algorithm1",),
            ("tests/games/test_estimate.py::TestNaiveTwins::test_against_exact_and_vectorised",), headline=True,
        ),
        untested(
            "ngt-first-principles", "section 2.4", "The approach is constructive, inherently interpretable and new.",
            "No measurement is named. What its numbers explain is measured at [section 7.4](#ngt-shapley-faithful).",
        ),
    ),
)  # fmt: skip

GAME = Section(
    "3.1 to 3.3: the game",
    (
        _ngt("1", "Marginal contribution of a token to a coalition.", "game",
             "tests/games/test_game.py::test_differences_equal_their_plain_twins"),
        Entry(
            "ngt-normalisation", "section 3.2", "Normalisation: v(∅) = 0.", games.normalised, ("theory",), "it is 0",
            ("spinformer.games.norm:NormGame",), ("tests/games/test_game.py::test_value_is_the_length_of_the_sum",),
        ),
        Entry(
            "ngt-monotone", "section 3.2", "Monotonicity: more tokens never have a smaller v.", games.monotone,
            ("theory",), "no token lowers v, in any direction of the vectors",
            ("spinformer.games.norm:NormGame",), ("tests/games/test_game.py::test_value_is_the_length_of_the_sum",),
        ),
        Entry(
            "ngt-bounded", "section 3.2", "Boundedness: there is an M with |v(C)| ≤ M.", games.bounded, ("theory",),
            "each text has an M",
            ("spinformer.games.norm:NormGame",),
            ("tests/games/test_game.py::test_value_is_the_length_of_the_sum",),
        ),
        _ngt("2", "Characteristic function: v(C) = f of the norm of the sum of value vectors.",
             "spinformer.games.norm:NormGame", "tests/games/test_game.py::test_value_is_the_length_of_the_sum",
             "With f the identity, as in Algorithm 1 ([f](#contradiction-f))."),
        _ngt("3", "The Gibbs distribution over coalitions, D(C) ∝ exp(v(C) / γ).", "exact",
             f"{EXACT}::test_equals_the_definitions"),
    ),
)  # fmt: skip

VALUES = Section(
    "3.4 to 3.6: values, importance, interaction",
    (
        _ngt("4", "Shapley value: the mean marginal contribution over all permutations.", "exact",
             f"{EXACT}::test_equals_the_definitions"),
        Entry(
            "ngt-fair", "sections 3.4.1, 6; Table 2",
            "The values satisfy fairness axioms: each is a provably fair share of the whole.", games.fair, ("theory",),
            "the values that the layer estimates add up to v of all tokens",
            ("spinformer.games.exact:exact_values",), (f"{EXACT}::test_efficiency", f"{EXACT}::test_symmetry"),
        ),
        _ngt("5", "Banzhaf index: the mean marginal contribution over all coalitions.", "exact",
             f"{EXACT}::test_equals_the_definitions"),
        _ngt("6", "Importance J_i = λ_i φ_i + (1 - λ_i) β_i, both normalised.", "layer",
             f"{LAYER}::test_paper_preset_is_algorithm_1",
             'By the L1 norm, as in Algorithm 1; `normalisation="sum"` is Eq. 6 as printed '
             "([norm](#contradiction-norm))."),
        _ngt("7", "Gate λ_i = σ(w · x_i + b).", "layer", f"{LAYER}::test_paper_preset_is_algorithm_1"),
        Entry(
            "ngt-gate", "sections 3.5, 6", "The gate learns where Shapley and where Banzhaf values matter.",
            games.gate_chooses, ("targets",), "the two estimates that it mixes converge to different numbers",
            ("spinformer.attention.neurogame:NeuroGameAttention",), (f"{EXACT}::test_gibbs_shapley_is_gibbs_banzhaf",),
            headline=True,
        ),
        Entry(
            "ngt-gate-trained", "section 3.5", "After training the gate tells tokens apart.", layer.open_gate,
            ("nli-paper",), f"λ spreads by {layer.OPEN} over tokens; with conditions if its mean is off 1/2 by that",
            ("research/experiments/layer_reading.py",),
            ("tests/research/test_published.py::test_couplings_by_class",),
        ),
        Entry(
            "ngt-importance", "section 3.5", "Larger J_i indicate higher importance of the token.",
            layer.faithful("layer-field"), ("nli-paper",), layer.FAITHFUL, ("spinformer.explain.methods.layer",),
            ("tests/evaluate/test_faithfulness.py::test_by_hand",), headline=True,
        ),
        _ngt("8", "Conditional interaction of two tokens in a context.", "game",
             "tests/games/test_game.py::test_differences_equal_their_plain_twins"),
        _ngt("9", "Interaction J_ij: the mean over contexts, with uniform weights.", "exact",
             f"{EXACT}::test_equals_the_definitions", "It is the Banzhaf interaction index, `BII`."),
    ),
)  # fmt: skip

SPINS = Section(
    "3.7 to 3.9: energy and attention",
    (
        _ngt("10", "Hamiltonian H(S).", "ising", f"{ISING}::test_energy_is_the_hamiltonian"),
        Entry(
            "ngt-inactive", "section 3.7", "Tokens of low importance are favoured to be inactive.",
            spins.low_importance, ("theory",), "more than 1% of the fields are negative",
            ("spinformer.attention.from_game",), (f"{LAYER}::test_paper_preset_settings",),
        ),
        Entry(
            "ngt-independent", "section 3.7", "If J_ij = 0, tokens i and j are independent.", spins.independent,
            ("theory",), "their correlation is 0 whatever the other couplings are",
            ("spinformer.ising.exact:exact_magnetization",), (f"{ISING}::test_exact_sums_equal_loops",),
        ),
        _ngt("11-13", "Attention α_i = P(s_i = +1) = (1 + ⟨s_i⟩) / 2 under the Gibbs distribution, in [0, 1].",
             "spinformer.ising.exact:exact_magnetization", f"{ISING}::test_exact_sums_equal_loops"),
        _ngt("14", "The sum of α_i is the expected number of active tokens; it need not be 1.",
             "spinformer.ising.exact:exact_magnetization", f"{ISING}::test_exact_sums_equal_loops"),
        untested(
            "ngt-complexity-of-meaning", "section 3.8, remark 3",
            "Texts whose meaning needs more active tokens have a larger total attention.",
            "The paper gives no measure of how many tokens a meaning needs.",
        ),
        Entry(
            "ngt-temperature", "section 3.9", "Attention is 0 or 1 as γ → 0, and 1/2 as γ → ∞.",
            spins.temperature_limits, ("theory",), "it is so to 0.001, at γ = 1e-6 and 1e6",
            ("spinformer.explain.dynamics:sweep_temperature",),
            ("tests/explain/test_explain.py::TestExplain::test_spins_are_decided_in_the_cold_and_not_in_the_heat",),
        ),
    ),
)  # fmt: skip

MEAN_FIELD = Section(
    "3.10 to 3.12: mean field, output, classifier",
    (
        _ngt("15", "Expected spins and partition function, exactly.", "spinformer.ising.exact:exact_magnetization",
             f"{ISING}::test_exact_sums_equal_loops"),
        _ngt("16", "The mean-field equations; the spins of the layer solve them.",
             "spinformer.ising.mean_field:mean_field",
             "tests/ising/test_mean_field.py::test_all_solvers_find_the_fixed_point",
             "Of a layer that converged (γ = 0.7)."),
        Entry(
            "ngt-theorem-1", "Theorem 1 (Eqs. 16, 17, 24)",
            "The expected spins under the Boltzmann distribution satisfy Eq. 16.", spins.theorem_1, ("theory",),
            "exact expected spins solve it, with couplings too", ("spinformer.ising.mean_field:mean_field",),
            (f"{ISING}::test_mean_field_bounds_the_free_energy_and_tap_is_closer",),
        ),
        _ngt("18-19", "Effective Hamiltonian and effective field of a token.", "ising",
             f"{ISING}::test_effective_field_is_minus_the_energy_gradient"),
        _ngt("20-23", "A single spin in a field: its distribution and its mean, tanh(h / γ).", "ising",
             f"{ISING}::test_glauber_samples_the_gibbs_distribution"),
        _ngt("25", "Fixed-point iteration.", "ising",
             "tests/ising/test_mean_field.py::test_undamped_steps_are_algorithm_1"),
        Entry(
            "ngt-iterations", "sections 3.10, 4.2.2", "The iteration typically converges within 10 to 20 steps.",
            spins.converges_quickly, ("theory", "nli-paper"),
            "nine of ten texts come to rest within 20 steps; with conditions if only after training, within 25",
            ("spinformer.ising.mean_field:mean_field",),
            ("tests/ising/test_mean_field.py::test_report_is_of_the_undamped_map_of_what_is_returned",), headline=True,
        ),
        Entry(
            "ngt-table-1", "Table 1", "For n = 512: 2^512 ≈ 10^154 operations exactly, about 10^6 by mean field.",
            spins.table_1, ("theory",), "the powers of ten are these", ("spinformer.ising.exact:MAX_SPINS",),
            (f"{ISING}::test_too_many_spins",),
        ),
        Entry(
            "ngt-long", "sections 3.10.2, 8", "It is feasible for thousands of tokens.", spins.thousands_of_tokens,
            ("linear", "crossover"),
            f"dense couplings of {spins.THOUSANDS:,} tokens were run; with conditions if only low-rank ones were, and "
            "65,536 tokens take at most ten times as long as 8,192",
            ("spinformer.games.lowrank:estimate_low_rank",), (f"{LAYER}::TestUse::test_linear_is_close_to_dense",),
        ),
        _ngt("26-27", "Output of an attention head, and of all heads together.", "layer",
             f"{LAYER}::TestUse::test_heads_are_independent"),
        Entry(
            "ngt-heads", "section 3.11.2", "More heads are more accurate (the paper: they capture different patterns).",
            classifiers.changed("heads-4", "heads-12", expect="better"), ("nli-ablations",),
            "more heads raise the accuracy by more than seeds do", ("research/experiments/nli_paper.py",),
            (f"{LAYER}::TestUse::test_heads_are_independent",),
        ),
        _ngt("28-30", "Feed-forward classifier, logits, predicted class.", "spinformer.models.pooling:feed_forward",
             "tests/models/test_neurogame.py::test_every_head"),
    ),
)  # fmt: skip

SECTIONS = (ABSTRACT, GAME, VALUES, SPINS, MEAN_FIELD)
