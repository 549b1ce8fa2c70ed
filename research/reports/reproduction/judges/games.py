"""Judges of what the NeuroGame paper says of games and their estimators, from small exact calculations."""

import math

from research.reports.markdown import Record
from research.reports.reproduction.entry import Finding, decided, graded

EXACT = 1e-9  # differences below are rounding
FLOAT64 = math.log(1.7976931348623157e308)  # exp of more overflows


def higher_order(theory: Record) -> Finding:
    """Variance of v over coalitions by the number of tokens that it takes."""
    orders = theory["orders"]
    text = (
        f"On encoder outputs, before training, {orders['single']:.2%} of the variance of v over coalitions belongs to "
        f"single tokens, {orders['pairs']:.2%} to pairs, {orders['more']:.2%} to three tokens or more: v² is a sum "
        "over pairs of tokens. The layer keeps values of tokens and pairs alone."
    )
    return decided(orders["more"] >= 0.01, text)


def unbiased(theory: Record) -> Finding:
    """The exact expectation of the estimate in the example of section 5."""
    bias = theory["bias"]
    text = (
        f"The game of section 5, K = 3, over all draws: the estimate for `good` is {bias['expected']:.4f} in the mean. "
        f"Its own limit is {bias['gibbs']:.4f}, the Banzhaf value {bias['banzhaf']:.4f}, the Shapley value "
        f"{bias['shapley']:.4f}. The bias shrinks as K grows, towards the Gibbs-weighted mean."
    )
    return decided(abs(bias["expected"] - bias["shapley"]) <= EXACT, text)


def linear_complexity(theory: Record) -> Finding:
    """Growth of the number of evaluations when n doubles."""
    growth = theory["evaluations"]["growth_when_n_doubles"]
    text = (
        f"Evaluations of v by Algorithm 1 when n doubles: fields × {growth['fields']:.1f}, couplings "
        f"× {growth['couplings']:.1f}. So O(K n) for the fields, and O(K n²) with the couplings."
    )
    return graded(max(growth.values()) <= 2.1, growth["fields"] <= 2.1, text)


def normalised(theory: Record) -> Finding:
    """v of no token."""
    largest = max(theory["properties"][name]["empty"] for name in ("encoder outputs", "random directions"))
    return decided(largest <= EXACT, f"v(∅) = {largest:g}.")


def monotone(theory: Record) -> Finding:
    """How often a token lowers v."""
    real, spread = (theory["properties"][name]["falls"] for name in ("encoder outputs", "random directions"))
    text = (
        f"A token lowers v in {real:.1%} of all coalitions of encoder outputs, whose vectors point in similar "
        f"directions, and in {spread:.1%} for random directions. Nothing in training keeps it so."
    )
    return graded(max(real, spread) == 0, real == 0, text)


def bounded(theory: Record) -> Finding:
    """v against the sum of the lengths, and its size."""
    real, spread = (theory["properties"][name] for name in ("encoder outputs", "random directions"))
    text = (
        f"For one text v is at most the sum of the vectors' lengths ({real['bound']:.0%} of it on encoder outputs, "
        f'{real["largest"]:.0f} in the mean): M is another for each text. `activation="tanh"` bounds v by 1; then '
        f"{real['saturated']:.2%} of the coalitions have v = 1 to six digits."
    )
    return decided(max(real["bound"], spread["bound"]) <= 1, text)


def fair(theory: Record) -> Finding:
    """Whether values add up to v of all tokens."""
    axioms = theory["axioms"]
    text = (
        f"The sum of all values misses v of all tokens, on encoder outputs, by {axioms['shapley']:.0e} of it for exact "
        f"Shapley values, {axioms['banzhaf']:.1%} for Banzhaf values, and {axioms['gibbs']:.1%} for the limit of the "
        "paper's estimate, which is no Shapley value."
    )
    return graded(axioms["gibbs"] <= EXACT, axioms["shapley"] <= EXACT, text)


def gate_chooses(targets: Record) -> Finding:
    """Whether the two values that the gate mixes differ."""
    apart = targets["raw"]["gibbs_shapley_to_gibbs_banzhaf"]
    plain = targets["raw"]["shapley_to_banzhaf"]
    text = (
        f"Under the weights of Eq. 32 and Algorithm 1 both estimates have the same limit: their distance on encoder "
        f"outputs is {apart:.0%}, since both divide by the proposal. With uniform weights it is {plain:.1%}. Section 6 "
        "prints the weights without that division; then the limits differ."
    )
    return decided(apart > EXACT, text)


def equation_34(equations: Record) -> Finding:
    """Whether it is a probability."""
    total = equations["eq_34_total"]
    text = (
        f"Over all sets of {equations['players'] - 1} other tokens it adds up to {total:.2f}, not to 1: the factor 1/n "
        "for the drawn size is missing. It cancels in Eq. 32."
    )
    return decided(abs(total - 1) <= EXACT, text)


def stable(theory: Record) -> Finding:
    """The largest exponent against the range of float64."""
    exponent = theory["properties"]["largest_exponent"]
    text = (
        f"v / γ reaches {exponent:,.0f} on sentence pairs, and exp of more than {FLOAT64:.0f} overflows in float64. In "
        "logarithms, as the code has it, all is finite."
    )
    return graded(exponent < FLOAT64, math.isfinite(exponent), text)


def consistent(targets: Record) -> Finding:
    """How far the limit is from the values that the paper defines."""
    raw = targets["raw"]
    text = (
        f"They converge, but to Gibbs-weighted means. On encoder outputs these differ from the Shapley values by "
        f"{raw['gibbs_to_shapley']:.1%} in norm, and the interactions from those of Eq. 9 by "
        f'{raw["gibbs_pairs_to_uniform"]:.0%}. `weighting="uniform"` estimates what Eqs. 4, 5 and 9 define.'
    )
    return decided(max(raw["gibbs_to_shapley"], raw["gibbs_pairs_to_uniform"]) <= 0.01, text)


def monte_carlo_rate(theory: Record) -> Finding:
    """Error at K = 25 over error at K = 400; the root of 16 is 4."""
    first, last = theory["rate"]["budgets"][0], theory["rate"]["budgets"][-1]
    ratios = {name: theory["rate"][name][0] / theory["rate"][name][-1] for name in ("example", "encoder outputs")}
    text = (
        f"From K = {first} to {last} the error falls by {ratios['example']:.1f} times in the game of section 5, and by "
        f"{ratios['encoder outputs']:.1f} times on encoder outputs at γ = 0.25 (the rate gives 4). It is the error "
        "that falls as 1/√K; the variance falls as 1/K."
    )
    return graded(min(ratios.values()) >= 3.5, ratios["example"] >= 3.5, text)


def focuses(ess: Record, efficiency: Record) -> Finding:
    """Effective sample size of the paper's estimator, and its error beside equal weights."""
    rows = {row["index"]: row["mean"] * row["budget"] for row in ess["rows"]
            if row["proposal"] == "uniform" and row["budget"] == 25}  # fmt: skip
    plain = next(row for row in efficiency["rows"] if row["target"] == "uniform" and row["index"] == "SV")
    text = (
        f"Effective sample size of 25 at γ = 0.25 on encoder outputs: {rows['SV']:.1f} for Shapley, {rows['BV']:.1f} "
        f"for Banzhaf, {rows['BII']:.1f} for pairs. Error towards the Shapley value at K = 250: "
        f"{plain['paper_gibbs']:.2f} with Gibbs weights, {plain['paper']:.2f} with equal ones."
    )
    return decided(min(rows.values()) >= 12.5 and plain["paper_gibbs"] <= plain["paper"], text)


def enough_samples(ess: Record) -> Finding:
    """Effective sample size at K = 100 and 400."""
    sizes = {row["budget"]: row["mean"] * row["budget"] for row in ess["rows"]
             if row["proposal"] == "uniform" and row["index"] == "BV"}  # fmt: skip
    shown = ", ".join(f"{sizes[budget]:.1f} of {budget}" for budget in (100, 400))
    text = f"Effective sample size of Banzhaf values: {shown} (γ = 0.25, encoder outputs)."
    return decided(min(sizes[100], sizes[400]) >= 25, text)


def algorithm_1(equations: Record, speed: Record) -> Finding:
    """Its estimators against a plain recomputation on the same draws, and the time of its loops."""
    difference = equations["differences"]["ngt-32-36"]
    text = (
        f"Written out with its loops (`algorithm1`), it differs from a plain recomputation on the same draws by "
        f"{difference:.0e}. The loops would take {speed['loops_seconds']:,.0f} s for 4 sequences of 128 tokens "
        f"(extrapolated); as matrix products the estimates take {speed['seconds']:.2f} s."
    )
    return decided(difference <= equations["tolerance"], text)
