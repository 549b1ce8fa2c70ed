"""What the command line offers by name is what there is."""

from typing import get_args

import pytest

pytest.importorskip("transformers")

from spinformer._base import choices
from spinformer.cli.options import method_summaries
from spinformer.explain.methods import METHODS, ScorerMethod, all_methods
from spinformer.models.pooling import POOLING_HEADS
from spinformer.training.attractor.presets import PRESETS
from spinformer.training.classifier.recipe import pooling_heads


def test_every_name_has_its_code():
    assert {name: method.summary for name, method in all_methods().items()} == choices.METHOD_SUMMARIES
    assert list(all_methods()) == list(choices.METHOD_SUMMARIES)
    assert tuple(POOLING_HEADS) == choices.HEADS == pooling_heads()
    assert tuple(PRESETS) == choices.PRESET_NAMES
    assert (*choices.MASKINGS, "own") == get_args(choices.Masking)


def test_methods_of_other_packages_are_offered():
    METHODS.register(ScorerMethod("another", "one of another package", "1", lambda context: None))
    try:
        assert method_summaries() == {**choices.METHOD_SUMMARIES, "another": "one of another package"}
    finally:
        METHODS.unregister("another")


def test_registries_are_asked_where_they_are_imported():
    assert choices.registered(("no.such.module",), lambda: 1, 2) == 2
    assert choices.registered(("no.such.module", "sys"), lambda: 1, 2) == 1
