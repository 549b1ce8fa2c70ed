"""Bad arguments to explainers and explanations: one line of our own, never torch's error or a silent NaN."""

import tempfile
from functools import lru_cache
from pathlib import Path

from spinformer.data import Texts
from spinformer.explain import METHODS, Explainer, Explanation, ExplanationSet, explain, ground
from spinformer.models import load_classifier
from tests.properties.cases import law, seeds
from tests.properties.models import SMALL, bare, classifier, grounded, split, texts, tokenizer
from tests.properties.refusals import (
    Call,
    Rubbish,
    bad_cases,
    both,
    count,
    instance,
    name,
    number,
    refused,
    refused_at,
    values,
)

TEXT = values(
    number=3,
    nothing=None,
    empty="",
    space="   ",
    invisible="\u200b",
    bytes=b"a man",
    half_a_character="a \ud83d",
    a_number=["a man", 3],
    an_empty_one=["a man", ""],
    rubbish=Rubbish(),
    a_dict={"text": "a man"},
)
TARGET = values(
    beyond=3,
    below=-1,
    another="rubbish",
    true=True,
    fraction=1.5,
    list_of_two=["neutral", "neutral"],
    rubbish=Rubbish(),
    nothing_in=[None],
)
OPTIONS = {
    **{"masking": name(optional=True), "samples": both(count(0), values(three=3, too_many=2**21)), "weighting": name()},
    **{
        "seconds": number(optional=True),
        "temperature": number(),
        "max_length": count(4, optional=True),
        "batch_size": count(1),
    },
    **{"seed": count(0), "bf16": values(text="yes", number=3), "game": instance(optional=True)},
    **{"additive": instance(optional=True), "model": instance(), "tokenizer": instance()},
}
CALL = {"text": TEXT, "target": TARGET, "method": name(), "passes": count(0), "until": number(optional=True)}
CALL["text_pair"] = values(number=3, empty="", space="  ", two=["a", "b"], one=["a"], rubbish=Rubbish(), bytes=b"a")
CORPUS = values(
    number=3,
    nothing=None,
    rubbish=Rubbish(),
    none_of_them=[],
    numbers=[1, 2],
    mixed=["a", ("b", "c")],
    single_parts=[("a",)] * 9,
    empty_ones=["a", ""] * 8,
    no_file="no/such.csv",
    few=["a man"] * 3,
    no_texts=Texts([]),
)
LEARN = {
    **{one: count(1) for one in ("subsets", "save_steps", "heads", "reads")},
    **{one: count(0) for one in ("epochs", "batch_size", "repeats", "dim", "hidden", "readout")},
    **{one: number(0.0, closed=True) for one in ("learning_rate", "weight_decay")},
    **{one: number(0.0, 1.0, closed=True) for one in ("warmup", "gain")},
    **{
        "masking": name(),
        "form": name(),
        "seed": count(0),
        "max_length": count(0),
        "layers": values(beyond=(99,), words=("a",), number=3, fraction=(0.5,)),
    },
    **{"texts": CORPUS, "nonsense": values(given=3)},
}


def saved(change) -> Explanation:
    """What comes of a saved explanation whose text is changed."""
    with tempfile.TemporaryDirectory() as folder:
        path = grounded()("a man runs").save(Path(folder) / "why.json")
        path.write_text(change(path.read_text()))
        return Explanation.load(path)


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    made = grounded()("a man runs", "the dog")
    corpus = [(row, "a dog") for row in texts(12).first]
    calls = (
        Call("Explainer", Explainer, lambda seed: {"model": classifier(), "tokenizer": tokenizer()}, OPTIONS),
        Call(
            "explain",
            explain,
            lambda seed: {"model": classifier(), "tokenizer": tokenizer(), "text": "a man"},
            {"text": TEXT, "passes": count(0)},
        ),
        Call("Explainer()", grounded(), lambda seed: {"text": "a man runs", "text_pair": "the dog"}, CALL),
        Call(
            "Explainer() without a game",
            bare(),
            lambda seed: {"text": "a man runs"},
            {"method": values(game="shapley", layer="layer", additive="additive-explainer")},
        ),
        Call(
            "Explainer() of lists",
            grounded(),
            lambda seed: {"text": ["a man", "a dog"], "text_pair": ["a", "b"]},
            {
                "text_pair": values(one="a", short=["a"], long=["a", "b", "c"], empty=["a", ""]),
                "target": values(one_too_few=["neutral"], bad=["neutral", "rubbish"]),
            },
        ),
        Call(
            "Explainer.scorer",
            grounded().scorer,
            lambda seed: {"method": "shapley"},
            {"method": name(), "passes": count(0), "seed": values(text="a", fraction=0.5, negative=-1)},
        ),
        Call(
            "Explainer.scorer()",
            grounded().scorer("random"),
            lambda seed: {"words": split(texts(1))},
            {"words": instance()},
        ),
        Call("Explainer.ground", bare().ground, lambda seed: {"texts": corpus, **SMALL}, LEARN),
        Call(
            "ground",
            ground,
            lambda seed: {"model": classifier(), "tokenizer": tokenizer(), "texts": corpus, **SMALL},
            {"model": instance(), "tokenizer": instance(), "resume": values(without_output=True)},
        ),
        Call(
            "Explainer.save",
            grounded().save,
            lambda seed: {},
            {"folder": values(number=3, nothing=None, rubbish=Rubbish())},
        ),
        Call(
            "Explainer.from_pretrained",
            Explainer.from_pretrained,
            lambda seed: {},
            {"path_or_hub_id": values(number=3, nothing=None, rubbish=Rubbish(), missing="./no/such/folder", empty="")},
        ),
        Call(
            "load_classifier",
            load_classifier,
            lambda seed: {},
            {"path_or_hub_id": values(number=3, nothing=None, missing="./no/such/folder", empty="")},
        ),
        Call("Explanation.top_words", made.top_words, lambda seed: {"k": 2}, {"k": count(1)}),
        Call("Explanation.top_pairs", made.top_pairs, lambda seed: {"k": 2}, {"k": count(1)}),
        Call("Explanation.plot", made.plot, lambda seed: {"kind": "words"}, {"kind": name()}),
        Call(
            "Explanation.difference",
            made.difference,
            lambda seed: {"other": made},
            {"other": both(instance(), values(another=grounded()("a dog")))},
        ),
        Call(
            "Explanation.load",
            Explanation.load,
            lambda seed: {},
            {"path": values(number=3, nothing=None, missing="no/such.json")},
        ),
        Call(
            "Explanation.load()",
            saved,
            lambda seed: {},
            {
                "change": values(
                    cut=lambda text: text[: len(text) // 2],
                    a_list=lambda text: "[]",
                    a_string=lambda text: '"a"',
                    nothing=lambda text: "",
                    nan=lambda text: text.replace('"importance": ', '"importance": NaN, "x": ', 1),
                )
            },
        ),
        Call(
            "Explanation.from_row",
            Explanation.from_row,
            lambda seed: {},
            {"row": values(nothing_in={}, a_list_is_short={**made.to_row(), "sides": [0]})},
        ),
        Call(
            "ExplanationSet",
            ExplanationSet,
            lambda seed: {"explanations": [made]},
            {
                "explanations": values(number=3, nothing=None, none_of_them=[], numbers=[3], rubbish=Rubbish()),
                "normal": values(number=3, nothing=None),
            },
        ),
        Call(
            "ExplanationSet.load",
            ExplanationSet.load,
            lambda seed: {},
            {"path": values(number=3, nothing=None, missing="no/such.jsonl", another="no/such.txt")},
        ),
        Call(
            "ExplanationSet.words",
            ExplanationSet([made]).words,
            lambda seed: {"k": 2, "by": "share", "min_count": 1},
            {"k": count(1, optional=True), "by": name(), "min_count": count(1)},
        ),
        Call("ExplanationSet.plot", ExplanationSet([made]).plot, lambda seed: {"kind": "words"}, {"kind": name()}),
        Call("ExplanationSet.frame", ExplanationSet([made]).to_frame, lambda seed: {"kind": "words"}, {"kind": name()}),
        Call(
            "ExplanationSet.unusual",
            ExplanationSet([made]).unusual,
            lambda seed: {"k": 1},
            {"k": count(1, optional=True)},
        ),
        Call(
            "ExplanationSet.cohorts",
            ExplanationSet([made]).cohorts,
            lambda seed: {"by": ["a"]},
            {"by": values(number=3, nothing=None, text="a", too_many=["a", "b"], rubbish=Rubbish())},
        ),
        Call(
            "ExplanationSet.compare",
            ExplanationSet([made]).compare,
            lambda seed: {"other": ExplanationSet([made])},
            {
                "other": both(instance(), values(other_texts=ExplanationSet([grounded()("a dog", "the man")]))),
                "names": values(number=3, nothing=None, one=("a",), numbers=(1, 2), text="ab"),
            },
        ),
        Call("METHODS.register", METHODS.register, lambda seed: {}, {"item": instance()}),
        Call("METHODS", lambda name: METHODS[name], lambda seed: {}, {"name": name()}),
    )
    return bad_cases(*calls)


def test_every_bad_argument_once():
    refused(bad())


@law(
    "explain.Explainer",
    "explain.Explanation",
    "explain.ExplanationSet",
    "explain.explain",
    "explain.ground",
    "explain.METHODS",
    "load_classifier",
    share=8,
    place=seeds,
    number=seeds,
)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
