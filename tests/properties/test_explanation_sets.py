"""Laws of sets of explanations: order does not matter, parts make the whole, and differences change sign."""

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import strategies as st

import spinformer
from spinformer.explain import ExplanationSet, PairSummary, SetDifference, UnusualText, WordSummary
from tests.explain.test_explanation_set import review
from tests.properties.cases import law

words = st.sampled_from(["good", "Good", "bad", "film", "a", "long"])
values = st.floats(-1, 1).map(lambda value: round(value, 6))


@st.composite
def texts(draw) -> list[tuple[str, tuple[float, ...], str, tuple[tuple[int, int, float], ...]]]:
    """Words with their values, a class, and a few pairs, of some texts."""
    made = []
    for number in range(draw(st.integers(1, 7))):
        content = draw(st.lists(st.tuples(words, values), min_size=1, max_size=5))
        label = draw(st.sampled_from(["good", "bad"]))
        couples = [(i, j, draw(values)) for j in range(len(content)) for i in range(j) if draw(st.booleans())]
        couples.sort(key=lambda couple: -abs(couple[2]))
        phrase = " ".join([f"t{number}", *(word for word, _ in content)])
        made.append((phrase, (0.0, *(value for _, value in content)), label, tuple(couples)))
    return made


def made_of(rows, factor=1.0) -> ExplanationSet:
    return ExplanationSet(
        review(phrase, tuple(factor * value for value in scores), label, pairs) for phrase, scores, label, pairs in rows
    )


def near(one, other):
    """The same numbers by name, up to rounding."""
    assert set(one) == set(other)
    for key, numbers in one.items():
        assert numbers == pytest.approx(other[key], abs=1e-9, nan_ok=True)


def numbers_of(summaries: list[WordSummary] | list[PairSummary]) -> dict[tuple, tuple]:
    """By what each is of."""
    found = {}
    for one in summaries:
        name = (one.text, one.side) if isinstance(one, WordSummary) else (one.first, one.second)
        error = math.nan if one.stderr is None else one.stderr
        found[name] = (one.count, one.mean, error, one.mean_abs, one.share, one.reach, one.misfit_stderr)
    return found


@law(
    "ExplanationSet",
    "explain.ExplanationSet",
    "explain.WordSummary",
    "explain.PairSummary",
    share=8,
    rows=texts(),
    seed=st.randoms(use_true_random=False),
)
def test_the_order_of_texts_does_not_matter(rows, seed):
    """And shares make a whole, means lie between the values, cohorts are a partition, and files give the set back."""
    assert spinformer.ExplanationSet is ExplanationSet
    whole, mixed = made_of(rows), made_of(seed.sample(rows, len(rows)))
    near(numbers_of(whole.words()), numbers_of(mixed.words()))
    near(numbers_of(whole.pairs()), numbers_of(mixed.pairs()))
    if any(word.mean_abs for word in whole.words()):
        assert sum(word.share for word in whole.words()) == pytest.approx(1)
    for word in whole.words():
        assert abs(word.mean) <= word.mean_abs + 1e-12
        assert 0 <= word.lower <= word.mean_abs
        assert word.count <= len(whole)
    parts = whole.cohorts(lambda one: len(one.words)).values()
    assert sorted(one.texts for part in parts for one in part) == sorted(one.texts for one in whole)
    assert sum(word.count for part in whole.by_class().values() for word in part.words()) == sum(
        word.count for word in whole.words()
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_text("".join(json.dumps(one.to_row(number)) + "\n" for number, one in enumerate(whole)))
        assert list(ExplanationSet.load(path)) == list(whole)
    assert str(whole).startswith(f"{len(whole)} explanations")


@law("explain.UnusualText", share=6, rows=texts(), factor=st.floats(0.1, 10))
def test_distances_have_no_unit(rows, factor):
    """Values in other units give the same distances; every text of a class with enough of them has one."""
    found, scaled = made_of(rows).unusual(), made_of(rows, factor).unusual()
    near({one.index: one.distance for one in found}, {one.index: one.distance for one in scaled})
    for one in found:
        assert isinstance(one, UnusualText)
        assert math.isfinite(one.distance)
        assert len(one.deviations) == len({word.text.casefold() for word in one.record.words})
    sizes = {name: len(group) for name, group in made_of(rows).by_class().items()}
    assert len(found) == sum(size for size in sizes.values() if size >= 3)


@law("explain.SetDifference", share=6, rows=texts(), factor=st.floats(-2, 2), other=st.sampled_from(["good", "bad"]))
def test_differences_change_sign_with_the_models(rows, factor, other):
    """And a model that decides all texts alike disagrees where the first does not."""
    one = made_of(rows)
    two = ExplanationSet(
        replace(each, label=other, words=tuple(replace(w, importance=factor * w.importance) for w in each.words))
        for each in one
    )
    there, back = one.compare(two), two.compare(one)
    assert isinstance(there, SetDifference)
    means = {(word.text, word.side): word.mean for word in there.words}
    near(means, {(word.text, word.side): -word.mean for word in back.words})
    near(
        means,
        {(word.text, word.side): (1 - factor) * word.mean for word in one.words()},
    )
    assert len(there.disagreements) == sum(each.label != other for each in one)
    assert (there.count, there.compared) == (len(one), len(one))
