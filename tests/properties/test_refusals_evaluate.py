"""Bad arguments to metrics of explanations and to studies: one line of our own, never torch's error or a silent NaN."""

from functools import lru_cache
from pathlib import Path

import torch

from spinformer.data import Texts
from spinformer.data.highlights import Highlights
from spinformer.evaluate import (
    Comprehensiveness,
    Cost,
    Decisions,
    GameFit,
    HighlightAgreement,
    InteractionAgreement,
    LeaveOneOutCorrelation,
    Setting,
    Stability,
    Study,
    Sufficiency,
    Summary,
    TabulatedClassifier,
    choose,
    compare,
    decide,
    measure_exactness,
    measure_peers,
    report,
    tabulate,
)
from spinformer.games import Game, NormGame
from tests.properties.cases import law, numbers, seeds
from tests.properties.models import bare, grounded, masked, split, texts, tokenizer
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
    tensor,
    values,
)

SCORES = tensor(0, 1)


@lru_cache(maxsize=1)
def decided() -> Decisions:
    return decide(masked(), split(texts(2, longest=4)))


@lru_cache(maxsize=1)
def predicted() -> tuple[Game, torch.Tensor]:
    """The game of the texts decided on, and their exact interactions."""
    return grounded().grounded.games(decided().words).game(), InteractionAgreement().real(decided())


def scored(seed: int) -> dict:
    found = decided()
    return {"decisions": found, "scores": numbers("normal", seed, *found.mask.shape)}


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    explainer, given = grounded(), texts(2, longest=3)
    tables = tabulate(masked(), given, progress=False)
    metric = {"decisions": instance(), "scores": SCORES}
    marks = Highlights(texts(2, longest=4), ((((0, 1),), ()),) * 2, 0)
    parts = both(values(none=[], zero=[0.0], above=[1.5], nan=[torch.nan], words=["a"], number=0.5, nothing=None))
    scorers = [explainer.scorer("random")]
    compared = compare(scorers, masked(), texts(2), progress=False)
    calls = (
        Call(
            "decide",
            decide,
            lambda seed: {"classifier": masked(), "words": split(texts(2))},
            {"classifier": instance(), "words": instance(), "rows": values(one=(0,), text="rubbish", number=3)},
        ),
        Call("Comprehensiveness", Comprehensiveness, lambda seed: {}, {"fractions": parts}),
        Call("Sufficiency", Sufficiency, lambda seed: {}, {"fractions": parts}),
        Call("Comprehensiveness()", Comprehensiveness(), scored, metric),
        Call("Sufficiency()", Sufficiency(), scored, metric),
        Call("LeaveOneOutCorrelation", LeaveOneOutCorrelation, lambda seed: {}, {"kind": name()}),
        Call("LeaveOneOutCorrelation()", LeaveOneOutCorrelation(), scored, metric),
        Call(
            "Stability()",
            Stability(),
            lambda seed: {**scored(seed), "scores": [scored(seed)["scores"]] * 2},
            {
                "decisions": instance(),
                "scores": values(
                    one=[torch.ones(2, 3)], none=[], number=3, bad=[torch.ones(1), torch.ones(1)], words=["a", "b"]
                ),
            },
        ),
        Call(
            "HighlightAgreement",
            HighlightAgreement,
            lambda seed: {"highlights": marks},
            {"highlights": both(instance(), values(single=Highlights(Texts(["a"]), ((((0, 1),), ()),), 0)))},
        ),
        Call("HighlightAgreement()", HighlightAgreement(marks), scored, metric),
        Call("GameFit", GameFit, lambda seed: {}, {"budget": count(2), "seed": count(0)}),
        Call(
            "GameFit()",
            GameFit(4),
            lambda seed: {"decisions": decided(), "game": predicted()[0]},
            {"decisions": instance(), "game": both(instance(), values(other=NormGame(torch.ones(2, 99, 2))))},
        ),
        Call(
            "InteractionAgreement()",
            InteractionAgreement(),
            lambda seed: {"decisions": decided(), "predicted": predicted()[0], "real": predicted()[1]},
            {
                "decisions": instance(),
                "predicted": values(
                    text="rubbish",
                    nothing=None,
                    other=NormGame(torch.ones(2, 99, 2)),
                    flat=torch.ones(2, 3),
                    nan=torch.full_like(predicted()[1], torch.nan),
                ),
            },
        ),
        Call("Cost", Cost, lambda seed: {"classifier": masked()}, {"classifier": instance()}),
        Call(
            "Summary.of",
            Summary.of,
            lambda seed: {"values": torch.ones(3)},
            {
                "values": values(
                    text="rubbish", nothing=None, a_list=[1.0], matrix=torch.ones(2, 2), integers=torch.ones(3).long()
                )
            },
        ),
        Call(
            "compare",
            compare,
            lambda seed: {"scorers": scorers, "classifier": masked(), "texts": texts(2), "progress": False},
            {
                "scorers": values(none=[], twice=scorers * 2, number=3, rubbish=[Rubbish()]),
                "classifier": instance(),
                "texts": both(instance(), values(none=Texts([]))),
                "seeds": values(one=(1,), twice=(1, 1), number=3, words=("a", "b")),
                "chunk": count(1),
                "max_length": count(1),
                "metrics": values(none=[], twice=[Sufficiency(), Sufficiency()], number=3, rubbish=[Rubbish()]),
            },
        ),
        Call(
            "Table.summary",
            compared.summary,
            lambda seed: {"method": "random", "metric": "sufficiency"},
            {"method": name(), "metric": name()},
        ),
        Call(
            "Setting",
            Setting,
            lambda seed: {"method": "shapley"},
            {"method": both(name(), values(no_index="random")), "passes": count(0), "until": number(optional=True)},
        ),
        Call(
            "Setting.parse",
            Setting.parse,
            lambda seed: {},
            {
                "text": values(
                    number=3,
                    nothing=None,
                    passes="shapley:x",
                    error="shapley:until=x",
                    method="rubbish:3",
                    negative="shapley:-3",
                )
            },
        ),
        Call(
            "choose",
            choose,
            lambda seed: {"texts": texts(9), "tokenizer": tokenizer(), "count": 2, "low": 2, "high": 12},
            {
                "texts": both(instance(), values(none=Texts([]))),
                "tokenizer": instance(),
                "count": count(1),
                "low": both(count(2), values(above=13)),
                "high": both(count(2), values(above=21)),
                "seed": count(0),
                "max_length": count(1),
            },
        ),
        Call(
            "tabulate",
            tabulate,
            lambda seed: {"classifier": masked(), "texts": given, "progress": False},
            {
                "classifier": instance(),
                "texts": both(instance(), values(none=Texts([]), long=Texts(["a " * 21]))),
                "path": values(number=3, folder=Path()),
                "max_length": count(1),
            },
        ),
        Call(
            "TabulatedClassifier",
            TabulatedClassifier,
            lambda seed: {"classifier": masked(), "tables": tables},
            {"classifier": instance(), "tables": values(number=3, rubbish=[Rubbish()], nothing=None)},
        ),
        Call(
            "measure_exactness",
            measure_exactness,
            lambda seed: {"explainer": explainer, "texts": given, "tables": tables, "progress": False},
            {
                "explainer": instance(),
                "texts": both(instance(), values(none=Texts([]), other=texts(2, 7))),
                "tables": values(none=[], one=tables[:1], rubbish=[Rubbish()] * 2, number=3),
                "settings": values(none=[], twice=[Setting("shapley")] * 2, words=["shapley"], number=3),
            },
        ),
        Call(
            "measure_peers",
            measure_peers,
            lambda seed: {"tables": tables, "budgets": [6], "names": ["KernelSHAP"], "progress": False},
            {
                "tables": values(none=[], number=3, rubbish=[Rubbish()]),
                "budgets": values(none=[], twice=[6, 6], one=[1], words=["a"], number=3),
                "names": values(other=["rubbish"], number=3),
                "seed": count(0),
            },
        ),
        Call(
            "Study",
            Study,
            lambda seed: {"explainer": explainer, "texts": texts(2)},
            {"explainer": instance(), "texts": both(instance(), values(none=Texts([])))},
        ),
        Call("Study.fit", Study(bare(), texts(2)).fit, lambda seed: {}, {"coalitions": values(no_game=4)}),
        Call(
            "report",
            report,
            lambda seed: {"explainer": explainer, "texts": texts(2)},
            {
                "explainer": both(instance(), values(no_game=bare())),
                "texts": both(instance(), values(none=Texts([]))),
                "coalitions": count(2),
                "chunk": count(1),
            },
        ),
    )
    return bad_cases(*calls)


def test_every_bad_argument_once():
    refused(bad())


@law(
    *(f"evaluate.{one}" for one in ("compare", "choose", "tabulate", "Setting", "Study", "report", "decide")),
    share=10,
    place=seeds,
    number=seeds,
)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
