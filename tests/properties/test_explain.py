"""Laws of explanations: they add up, are the same again, and come back as they were saved."""

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import strategies as st

import spinformer
from spinformer.data.texts import Texts
from spinformer.explain import (
    METHODS,
    Context,
    Explainer,
    Explanation,
    Method,
    Pair,
    Word,
    explain,
    explain_corpus,
    ground,
)
from spinformer.games import exact_values
from spinformer.models.masked import ConfidenceGame
from tests import tiny
from tests.explain.world import assert_same, snapshot
from tests.properties.cases import assert_near, law, seeds
from tests.properties.models import SMALL, bare, classifier, grounded, pairs, split, texts, tokenizer
from tests.properties.models import words as phrases
from tests.properties.refusals import refusal

GAME = ("shapley", "banzhaf", "field", "attention")
numbers = st.floats(-1e6, 1e6, allow_nan=False)
maybe = st.none() | st.floats(0, 1e6)
signs = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


@law(
    "explain.Explainer",
    "Explainer",
    share=8,
    pair=pairs,
    target=st.none() | st.integers(0, 2),
    method=st.sampled_from(["shapley", "kernel-shap", "shapley-sampling"]),
    spend=st.booleans(),
)
def test_shapley_values_add_up(pair, target, method, spend):
    """What the classifier says of no words, plus the values of all words, is the probability: to 1e-5."""
    assert spinformer.Explainer is Explainer
    found = grounded()(*pair, target=target, method=method, passes=40 if spend else 0)
    total = found.base_value + sum(found.importance)
    assert abs(total - found.probabilities[found.target]) < 1e-5
    assert abs(sum(found.probabilities.values()) - 1) < 1e-5
    assert found.label == max(found.probabilities, key=found.probabilities.get)
    assert [word.text for word in found.words] == " ".join(pair).split()


@law(
    "explain.explain_corpus",
    share=2,
    rows=st.lists(pairs, min_size=1, max_size=5),
    part=st.integers(1, 4),
    world=st.integers(1, 3),
    kept=st.integers(0, 3),
)
def test_a_corpus_is_the_same_in_whatever_parts_by_however_many(rows, part, world, kept):
    """Every row once, in its place, and the same bytes from one process and from several."""
    corpus = Texts([first for first, _ in rows], [second for _, second in rows])
    with tempfile.TemporaryDirectory() as folder:
        one, many = Path(folder) / "one.jsonl", Path(folder) / "many.jsonl"
        explain_corpus(grounded(), corpus, one, part=part, pairs=kept, shard=(0, 1))
        ends = [
            explain_corpus(grounded(), corpus, many, part=part, pairs=kept, shard=(rank, world))
            for rank in reversed(range(world))
        ]
        assert ends[-1] == many
        assert many.read_bytes() == one.read_bytes()
        found = [json.loads(line) for line in one.read_text().splitlines()]
        assert sorted(path.name for path in Path(folder).iterdir()) == ["many.jsonl", "one.jsonl"]
    assert [(row["row"], row["text"], row["text_pair"]) for row in found] == [
        (place, *pair) for place, pair in enumerate(rows)
    ]
    assert all(len(row["interaction"]) <= kept for row in found)


@law("explain.Explainer", share=6, pair=pairs, method=st.sampled_from(["kernel-shap", "shapley"]))
def test_enough_passes_make_exact_values(pair, method):
    """Those of the classifier's own game, without an error."""
    found = grounded()(*pair, method=method, passes=1024)
    game = ConfidenceGame(grounded().classifier, split(texts(1).select([0]).__class__([pair[0]], [pair[1]])))
    assert_near(torch.tensor(found.importance), exact_values(game, "SV")[0], 1e-5, size=1)
    assert not any(found.importance_stderr)


@law(
    "explain.Explainer",
    "explain.METHODS",
    share=6,
    rows=st.lists(pairs, min_size=1, max_size=3),
    method=st.sampled_from(sorted(METHODS)),
)
def test_the_same_again_one_by_one_or_together(rows, method):
    """Every method that the classifier offers, with the caller's model in training, which stays so."""
    explainer = grounded()
    lacking = METHODS[method].missing(explainer.context())
    first, second = ([row[side] for row in rows] for side in (0, 1))
    if lacking is not None:
        with pytest.raises(ValueError):
            explainer(first, second, method=method)
        return
    passes = {"passes": 12} if METHODS[method].sampled and method not in GAME else {}
    explainer.model.train()
    try:
        before = snapshot(explainer.model)
        together = explainer(first, second, method=method, **passes)
        assert_same(before, snapshot(explainer.model))
        assert [one.importance for one in together] == [
            one.importance for one in explainer(first, second, method=method, **passes)
        ]
    finally:
        explainer.model.eval()
    for pair, one in zip(rows, together, strict=True):
        alone = explainer(*pair, method=method, **passes)
        assert (
            (alone.texts, alone.method, alone.passes) == (one.texts, method, one.passes) == (pair, method, one.passes)
        )
        assert_near(torch.tensor(alone.importance), torch.tensor(one.importance), 1e-4, size=1)
        assert all(math.isfinite(value) for value in one.importance)


@law(
    "explain.Explainer",
    share=5,
    pair=pairs,
    method=st.sampled_from(["shapley", "banzhaf", "kernel-shap", "leave-one-out"]),
)
def test_values_of_all_classes_cancel(pair, method):
    found = [grounded()(*pair, method=method, target=name) for name in tiny.NLI]
    total = sum(torch.tensor(one.importance) for one in found)
    assert_near(total, torch.zeros_like(total), 1e-5, size=1)
    assert [one.target for one in found] == list(tiny.NLI)


@law(
    "explain.explain",
    "explain",
    "explain.Explainer",
    share=5,
    pair=pairs,
    seed=st.integers(0, 50),
    samples=st.sampled_from([0, 16, 64]),
    weighting=st.sampled_from(["uniform", "gibbs"]),
    temperature=st.floats(0.1, 2),
)
def test_the_one_line_form(pair, seed, samples, weighting, temperature):
    """Is an explainer that is called, and so is the package of the same name."""
    options = {"game": grounded().grounded.head, "seed": seed, "samples": samples, "weighting": weighting}
    options["temperature"] = temperature
    expected = Explainer(classifier(), tokenizer(), **options)(*pair)
    assert explain(classifier(), tokenizer(), *pair, **options) == expected
    assert spinformer.explain(classifier(), tokenizer(), *pair, **options) == expected
    assert all(0 <= value <= 1 for value in expected.attention)


@law(
    "explain.Context",
    "explain.Method",
    "explain.METHODS",
    share=5,
    passes=st.integers(0, 99),
    seed=st.integers(0, 99),
    until=st.none() | st.floats(0.01, 1),
    pair=pairs,
)
def test_a_new_method_is_known_by_its_name(passes, seed, until, pair):
    """Its scores are the importance; the context holds the options of the call; then the name is free again."""
    seen: list[Context] = []

    class Lengths(Method):
        name, summary, passes, sampled = "lengths", "letters of each word", "0", True

        def scorer(self, context: Context):
            seen.append(context)

            class Scores:
                name, passes = "lengths", "0"

                def __call__(self, words, target=None):
                    return torch.tensor([[float(len(word)) for word in words.words[0]]])

            return Scores()

    METHODS.register(Lengths())
    try:
        assert "lengths" in bare().methods()
        found = bare()(*pair, method="lengths", passes=passes, until=until)
        scores = bare().scorer("lengths", passes=passes, seed=seed)(split(texts(1)))
    finally:
        METHODS.unregister("lengths")
    assert found.importance == [len(word) for word in " ".join(pair).split()]
    assert scores.shape[0] == 1
    assert (seen[0].passes, seen[0].until, seen[1].seed) == (passes, until, seed)
    assert isinstance(seen[0], Context)
    assert seen[0].labels == list(tiny.NLI)
    assert "lengths" not in METHODS


@st.composite
def explanations(draw) -> Explanation:
    """Any that could be: with or without errors, pairs, base value and notes."""
    content = draw(st.lists(st.tuples(signs, numbers, maybe, maybe, st.none() | numbers), min_size=1, max_size=5))
    given = tuple(draw(st.lists(signs, min_size=1, max_size=2)))
    words = tuple(
        Word(text, place % len(given), value, error, misfit, shapley)
        for place, (text, value, error, misfit, shapley) in enumerate(content)
    )
    couples = [(i, j) for j in range(len(words)) for i in range(j)] if draw(st.booleans()) else []
    found = tuple(Pair(i, j, draw(numbers), draw(maybe), draw(maybe)) for i, j in couples)
    names = draw(st.lists(signs, min_size=2, max_size=3, unique=True))
    return Explanation(
        texts=given,
        label=names[0],
        target=names[1],
        probabilities={name: 1 / len(names) for name in names},
        words=words,
        pairs=found,
        base_value=draw(st.none() | st.floats(0, 1)),
        method=draw(st.sampled_from(["shapley", "random"])),
        passes=draw(st.integers(0, 10**6)),
        samples=draw(st.integers(0, 10**6)),
        ess=draw(maybe),
        converged=draw(st.none() | st.booleans()),
        pair_index="SII" if found else None,
        notes=tuple(draw(st.lists(signs, max_size=2))),
    )


@law("explain.Explanation", "Explanation", "explain.Word", "explain.Pair", share=20, made=explanations())
def test_explanations_come_back_as_they_were_saved(made):
    """Through JSON in a file; and what is not one is refused in one line."""
    assert spinformer.Explanation is Explanation
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "why.json"
        assert made.save(path) == path
        assert Explanation.load(path) == made
        stored = json.loads(path.read_text())
        assert stored == json.loads(json.dumps(made.to_dict()))
        first, rest = stored["words"][0], stored["words"][1:]
        for spoilt in (
            {**stored, "rubbish": 3},
            {**stored, "passes": 1.5},
            {**stored, "texts": [3]},
            {**stored, "target": "no class"},
            {**stored, "words": []},
            {**stored, "words": [{**first, "importance": "much"}, *rest]},
            {**stored, "words": [{**first, "importance": math.nan}, *rest]},
            {**stored, "words": [{**first, "side": 7}, *rest]},
            {
                **stored,
                "pairs": [{"first": 0, "second": 99, "interaction": 0.0, "stderr": None, "misfit_stderr": None}],
            },
            [stored],
        ):
            path.write_text(json.dumps(spoilt))
            line = refusal(lambda: Explanation.load(path), "Explanation.load")
            assert line is None


@law("explain.Explanation", "explain.Word", "explain.Pair", share=12, made=explanations(), k=st.integers(1, 6))
def test_what_follows_from_an_explanation(made, k):
    """The largest first; symmetric matrices; intervals around the values; a text and a page that show all words."""
    top = made.top_words(k)
    assert [abs(word.importance) for word in top] == sorted(
        (abs(word.importance) for word in made.words), reverse=True
    )[:k]
    strongest = [abs(value) for _, _, value in made.top_pairs(k)]
    assert strongest == sorted((abs(pair.interaction) for pair in made.pairs), reverse=True)[:k]
    matrix = torch.tensor(made.interactions)
    assert torch.equal(matrix.nan_to_num(7.0), matrix.T.nan_to_num(7.0))
    assert all(
        (low <= value <= high) or math.isnan(low)
        for (low, high), value in zip(made.importance_interval, made.importance, strict=True)
    )
    other = replace(made, words=tuple(replace(word, importance=-word.importance) for word in made.words))
    for (mine, theirs, apart), (_, _, back) in zip(made.difference(other), other.difference(made), strict=True):
        assert apart == mine.importance - theirs.importance == -back
    page = made.to_html(title="a <b> & c")
    assert "<script" not in page.lower()
    assert "a &lt;b&gt; &amp; c" in page
    assert page.startswith("<!") and str(made)  # noqa: PT018


@pytest.fixture(scope="module")
def libraries():
    """Imported before: what they change of the environment on their first import is theirs."""
    return [pytest.importorskip(package) for package in ("pandas", "shap", "shapiq")]


@law("explain.Explanation", share=3, pair=pairs, method=st.sampled_from(["shapley", "shapley-sampling"]))
def test_explanations_for_other_libraries(libraries, pair, method):
    """pandas, shap and shapiq get the numbers of the explanation."""
    found = grounded()(*pair, method=method)
    frame, shap, shapiq = found.to_frame(), found.to_shap(), found.to_shapiq()
    assert list(frame["word"]) == [word.text for word in found.words] == list(shap.data)
    assert frame["importance"].tolist() == found.importance == shap.values.tolist()
    assert shap.base_values == found.base_value
    values = [word.shapley for word in found.words]
    assert shapiq.index == ("SII" if found.pairs else "SV")
    assert [float(shapiq[(place,)]) for place in range(len(values))] == pytest.approx(values, abs=1e-12)
    for pair_found in found.pairs:
        assert float(shapiq[(pair_found.first, pair_found.second)]) == pytest.approx(pair_found.interaction, abs=1e-12)


@law("explain.ground", "ground", share=1, seed=seeds, single=st.booleans(), phrase=phrases)
def test_grounding_twice_gives_the_same_game(seed, single, phrase):
    """Saved and loaded too; the classifier's weights, mode and the caller's generators stay as they are."""
    assert spinformer.ground is ground
    rows = texts(10, seed % 100)
    corpus = list(rows.first) if single else list(zip(rows.first, rows.second, strict=True))
    model = classifier(1)
    before = snapshot(model)
    options = {**SMALL, "seed": seed % 1000}
    one, other = (ground(model, tokenizer(), corpus, **options) for _ in range(2))
    assert_same(before, snapshot(model))
    expected = one(phrase)
    assert other(phrase) == expected
    with tempfile.TemporaryDirectory() as folder:
        one.save(folder)
        assert Explainer.from_pretrained(folder, device="cpu")(phrase) == expected
