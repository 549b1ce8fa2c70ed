"""The NeuroGame paper, sections 4 to 6: estimators, the worked example, the comparison with standard attention."""

from research.reports.reproduction.entry import Entry, Section, equation, untested
from research.reports.reproduction.judges import classifiers, games, layer, printed

ESTIMATE = "tests/games/test_estimate.py"
ALGORITHM = f"{ESTIMATE}::TestNaiveTwins::test_against_exact_and_vectorised"
EXAMPLE_CODE = ("spinformer.attention.worked_example:worked_example",)
DIGITS = "they agree to one unit of the last printed digit (the paper rounds on the way), and to 0.01"
EXAMPLE = "tests/ising/test_mean_field.py::TestWorkedExample"

ESTIMATORS = Section(
    "4: approximations",
    (
        equation("ngt", "31", "Target distribution of coalitions, ∝ exp(v(C) / γ).",
                 "spinformer.games.exact:exact_values", "tests/games/test_exact.py::test_equals_the_definitions"),
        equation("ngt", "32-36", "Normalised weights, and the estimators of φ_i, β_i and J_ij.",
                 "spinformer.attention.algorithm1:algorithm1", ALGORITHM),
        Entry(
            "ngt-eq-34", "Eq. 34", "The probability of a set under permutation sampling.", games.equation_34,
            ("equations",), "it adds up to 1", ("spinformer.attention.algorithm1:shapley_value",), (ALGORITHM,),
        ),
        Entry(
            "ngt-unbiased", "sections 1, 4.2.1", "The estimates are unbiased.", games.unbiased, ("theory",),
            "their expectation is the Shapley value", ("spinformer.games.estimate:estimate_values",),
            (f"{ESTIMATE}::test_estimate_is_within_its_error_of_the_exact_value",), headline=True,
        ),
        Entry(
            "ngt-stable", "abstract; section 4.2.1", "They are numerically stable for long sequences.", games.stable,
            ("theory",), "the weights of Eq. 32 can be computed as they are printed",
            ("spinformer.games.estimate:weighted_mean",),
            ("tests/attention/test_neurogame.py::TestExtremes::test_finite_for_many_tokens",),
        ),
        equation("ngt", "37", "Mean-field equations with estimated fields and couplings.",
                 "spinformer.ising.mean_field:mean_field",
                 "tests/attention/test_neurogame.py::test_paper_preset_is_algorithm_1"),
        Entry(
            "ngt-consistent", "section 4.3",
            "The estimates converge to the Shapley value, the Banzhaf index and the interaction as K grows.",
            games.consistent, ("targets",), "their limits differ by at most 1%",
            ("spinformer.games.exact:exact_values",),
            ("tests/games/test_exact.py::test_gibbs_shapley_is_gibbs_banzhaf",), headline=True,
        ),
        Entry(
            "ngt-concentrates", "section 4.3",
            "Gibbs weights concentrate on coalitions of high value and make the estimates more efficient.",
            games.focuses, ("ess", "efficiency"),
            "half of the samples are effective, and the error is at most that of equal weights",
            ("spinformer.games.estimate:estimate_values",), (f"{ESTIMATE}::test_a_collapsed_estimate_says_so",),
            headline=True,
        ),
        Entry(
            "ngt-trained-samples", "section 4.3", "The same in a trained layer.", classifiers.trained_samples,
            ("nli-paper",), "half of the samples are effective",
            ("spinformer.attention.output:Diagnostics",), (f"{ESTIMATE}::test_a_collapsed_estimate_says_so",),
        ),
        Entry(
            "ngt-rate", "section 4.3", "The error falls at the Monte-Carlo rate 1/√K.", games.monte_carlo_rate,
            ("theory",), "it falls by 3.5 times or more when K grows 16 times",
            ("spinformer.games.estimate:estimate_values",),
            (f"{ESTIMATE}::test_estimate_is_within_its_error_of_the_exact_value",),
        ),
        Entry(
            "ngt-samples", "sections 4.3, 6", "K from 100 to 1,000 gives sufficient accuracy.", games.enough_samples,
            ("ess",), "the effective sample size is 25 or more", ("spinformer.games.estimate:estimate_values",),
            (f"{ESTIMATE}::test_tilted_proposal_repairs_the_collapse",),
        ),
    ),
)  # fmt: skip

WORKED_EXAMPLE = Section(
    "5: worked example, “not good movie”",
    (
        Entry(
            "ngt-example-weights", "section 5.1", "Weights of three sampled coalitions.",
            printed.figures("exp(v(C_k) / gamma)", "Z", "normalised weights"), ("example",), DIGITS,
            EXAMPLE_CODE, (f"{EXAMPLE}::test_figures_that_follow_from_the_equations",),
        ),
        Entry(
            "ngt-example-values", "section 5.1.1", "Shapley and Banzhaf estimate of “good”: 0.711.",
            printed.figures("marginal contributions of t2", "phi_2 = beta_2"), ("example",), DIGITS,
            EXAMPLE_CODE, (f"{EXAMPLE}::test_figures_that_follow_from_the_equations",),
        ),
        Entry(
            "ngt-example-pair", "section 5.1.2", "Interaction of “not” and “good”: 0.466.",
            printed.figures("interactions of t1 and t2", "J_12"), ("example",), DIGITS,
            EXAMPLE_CODE, (f"{EXAMPLE}::test_figures_that_follow_from_the_equations",),
        ),
        Entry(
            "ngt-example-steps", "section 5.2", "Spins after one and two iterations.",
            printed.figures("spins after 1 step", "spins after 2 steps"), ("example",), DIGITS,
            EXAMPLE_CODE, (f"{EXAMPLE}::test_figures_that_follow_from_the_equations",),
        ),
        Entry(
            "ngt-example-converged", "section 5.2", "The printed spins and attention are converged.",
            printed.figures("spins at the fixed point", "attention at the fixed point"), ("example",),
            DIGITS, EXAMPLE_CODE, (f"{EXAMPLE}::test_fixed_point_and_marginals",), headline=True,
        ),
        Entry(
            "ngt-example-order", "section 5.2", "“good” has the highest attention, then “not”, then “movie”.",
            printed.example_order, ("example",), "this is the order at the fixed point", EXAMPLE_CODE,
            (f"{EXAMPLE}::test_fixed_point_and_marginals",),
        ),
    ),
)  # fmt: skip

COMPARISON = Section(
    "6: comparison with standard attention (Table 2), Algorithm 1",
    (
        untested(
            "ngt-table-2", "Table 2", "Core mechanism, sampling, gate, interactions, physical foundation, derivation.",
            "These rows describe the design; each part has its equations above. The rows that claim something follow.",
        ),
        Entry(
            "ngt-attention-faithful", "section 6; Table 2, interpretability",
            "Attention weights are provably fair contributions, not heuristics.", layer.faithful("layer", partly=False),
            ("nli-paper",), "comprehensiveness is at least halfway from random scores to leave-one-out",
            ("spinformer.explain.methods.layer",), ("tests/evaluate/test_faithfulness.py::test_by_hand",),
            headline=True,
        ),
        Entry(
            "ngt-attention-spread", "section 6",
            "What section 6 takes for granted: attention tells tokens apart after training.",
            layer.spread_of_attention, ("nli-paper",),
            f"it spreads by {layer.SPREAD} or more over tokens, in both forms and on both encoders; with conditions if "
            "in part of these",
            ("research/experiments/layer_reading.py",), ("tests/research/test_published.py::test_couplings_by_class",),
        ),
        Entry(
            "ngt-negation-robust", "section 6; Table 2, NLI logic",
            "It handles contradiction and negation robustly, where standard attention struggles.",
            classifiers.handles_negation, ("nli-heads",),
            "it is above softmax attention on MoNLI and on Breaking NLI, by more than the 95% interval over seeds",
            ("research/experiments/nli_stages.py",), ("tests/research/test_reproduce.py::test_heads",),
        ),
        Entry(
            "ngt-algorithm-1", "Algorithm 1", "The whole layer as an algorithm.", games.algorithm_1,
            ("equations", "speed"), "it gives the same estimates on the same draws",
            ("spinformer.attention.algorithm1:algorithm1",),
            ("tests/attention/test_neurogame.py::test_paper_preset_is_algorithm_1",),
        ),
    ),
)  # fmt: skip

SECTIONS = (ESTIMATORS, WORKED_EXAMPLE, COMPARISON)
