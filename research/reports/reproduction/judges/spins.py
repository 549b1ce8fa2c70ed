"""Judges of what the NeuroGame paper says of spins and of the mean field, from small exact calculations."""

from statistics import fmean

from research.reports.markdown import Record
from research.reports.reproduction.entry import Finding, decided, graded
from research.reports.reproduction.judges.classifiers import encoder_name, runs_of

EXACT = 1e-9  # differences below are rounding
TYPICAL = 0.9  # "typically": nine of ten
THOUSANDS = 4096  # tokens


def low_importance(theory: Record) -> Finding:
    """Whether any field of the paper's layer is negative."""
    share = theory["layer"]["negative_fields"]
    text = (
        f"{share:.1%} of the fields of the paper's layer are negative on 64 sentence pairs, before training. A field "
        "above 0 favours +1, however small it is."
    )
    return decided(share > 0.01, text)


def independent(theory: Record) -> Finding:
    """Correlation of two spins without a coupling."""
    through, alone = theory["independence"]["through a third"], theory["independence"]["alone"]
    text = (
        f"Two spins with J_12 = 0 that are both coupled to a third with strength 1, at γ = 1, have correlation "
        f"{through:.2f} ({alone:.2f} without the third). They are independent given all others, not by themselves."
    )
    return graded(abs(through) <= EXACT, abs(alone) <= EXACT, text)


def temperature_limits(theory: Record) -> Finding:
    """Attention in the cold and in the heat."""
    limits = theory["temperatures"]
    text = (
        f"100 random systems of 8 spins, exact: α is within {limits['cold']:.0e} of 0 or 1 at γ = 1e-6, and within "
        f"{limits['hot']:.0e} of 1/2 at γ = 1e6."
    )
    return decided(max(limits.values()) <= 1e-3, text)


def theorem_1(theory: Record) -> Finding:
    """Whether exact expected spins solve the mean-field equations."""
    row = theory["theorem"]
    text = (
        f"Exact expected spins miss Eq. 16 by at most {row['no couplings']:.0e} without couplings, and by up to "
        f"{row['couplings']:.2f} with them (100 random systems of 8 spins, γ = 1). It is an approximation, as step 2 "
        f"of the proof says: the solution is up to {row['distance']:.2f} away from the exact spins."
    )
    return graded(row["couplings"] <= EXACT, row["no couplings"] <= EXACT, text)


def converges_quickly(theory: Record, paper: Record) -> Finding:
    """Convergence within twenty steps, before training, and within 25 after."""
    within = theory["layer"]["within"]
    runs = runs_of(paper, "paper")
    trained = fmean(run["scores"]["snli_test"]["game"]["converged"] for run in runs)
    text = (
        f"Within {theory['layer']['steps']} steps come to rest, before training: {within['algorithm 1']:.0%} of 64 "
        f"sentence pairs without damping (Algorithm 1), {within['section 7.3']:.0%} with damping 0.7 (section 7.3). "
        f"After training by the paper's recipe ({encoder_name(runs[0])}), within 25 damped steps: {trained:.1%} of "
        "SNLI test."
    )
    return graded(min(within.values()) >= TYPICAL, trained >= TYPICAL, text)


def table_1(theory: Record) -> Finding:
    """The two numbers of Table 1."""
    row = theory["table_1"]
    text = f"n² T = {row['mean_field']:,}; 2^512 ≈ 10^{row['exact_power_of_ten']}."
    return decided(row["exact_power_of_ten"] == 154 and 1e6 <= row["mean_field"] < 1e7, text)


def thousands_of_tokens(linear: Record, crossover: Record) -> Finding:
    """Seconds for a long sequence with couplings of low rank, and the longest that was timed with dense ones."""
    dense = max(crossover["rows"], key=lambda row: row["tokens"])
    forward = linear["growth"]["forward"]
    text = (
        f"65,536 tokens take {forward['seconds'][1]:.2f} s in a forward pass on two CPU cores, "
        f'{forward["time"]:.1f} times as long as 8,192, with couplings of low rank (`couplings="linear"`). Dense '
        f"couplings, the paper's, were timed up to {dense['tokens']:,} tokens ({dense['dense_seconds']:.1f} s, forward "
        f"and backward, batch of {dense['batch']}); for {THOUSANDS:,} tokens they are {THOUSANDS**2 / 1e6:.1f} million "
        "numbers."
    )
    return graded(dense["tokens"] >= THOUSANDS, forward["time"] <= 10, text)
