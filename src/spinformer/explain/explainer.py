"""`Explainer`: a classifier with its game, which can be called on one text or on many."""

import tempfile
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_args, overload

import torch
from torch import nn

from spinformer._base import checks
from spinformer._base.choices import Masking
from spinformer._base.outputs import ON, Outputs
from spinformer._base.shared_state import evaluation_mode
from spinformer.explain.batches import explain_batches, split_rows
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.grounded import TEMPERATURE, GroundedClassifier, check_samples, choose_game_head
from spinformer.explain.inputs import (
    CallOptions,
    Corpus,
    Players,
    Target,
    as_players,
    as_texts,
    check_label_call,
    class_indices,
    grounding_texts,
)
from spinformer.explain.methods import Method, available_methods, get_method
from spinformer.explain.methods.additive import load_additive
from spinformer.explain.scoring import Scorer, in_evaluation
from spinformer.games import Weighting
from spinformer.models.functions import Function, FunctionModel, function_classifier
from spinformer.models.game_head import GameHead, built_in_game
from spinformer.models.lengths import check_vocabulary, resolve_max_length
from spinformer.models.loading import load_classifier
from spinformer.models.masked import BATCH_SIZE, Hide, MaskedClassifier
from spinformer.models.padding import set_padding
from spinformer.models.saving import save_model
from spinformer.models.without_hooks import Portable
from spinformer.training.game import GroundingOptions, hold_out, train_game_head

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Coalitions of an explanation that is quick rather than exact.
QUICK = 128
NO_GAME = "this classifier has no game, so masked passes were spent; with `spinformer ground` one pass is enough"


class Explainer(Portable):
    """Which words and which pairs of words decided, for the classifier that you have.

    model, tokenizer: any Hugging Face sequence classifier; where they name no padding token, which batches need, the
    end of the text is made it, in `tokenizer.pad_token` and `model.config.pad_token_id`. game: its game head, or the
    folder that holds one; by default the one in the model's own folder, or the one that the model was trained with. A
    classifier without a game is explained by masked passes. masking: how words are hidden; by default as in the game,
    or "attention". A game says nothing of another masking, which leaves the methods that need no game. A model that
    hides words in its own way hands in a function (`spinformer.models.masked.Hide`). additive: a trained
    `AdditiveExplainer` or its folder, for method "additive-explainer". samples: coalitions of the game behind its
    values, 0 for as many as leave a small error (QUICK is quicker and less exact); seconds: that `until` may take for a
    batch of texts; temperature, weighting: of the Ising model; max_length: tokens read of a text, by default as many as
    the model takes; batch_size: masked texts that go through the classifier at once; bf16: masked passes in bfloat16;
    seed: of the coalitions.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        game: GameHead | Path | str | None = None,
        masking: Masking | Hide | None = None,
        additive: Scorer | Path | str | None = None,
        samples: int = 0,
        seconds: float | None = None,
        temperature: float = TEMPERATURE,
        weighting: Weighting = "uniform",
        max_length: int | None = None,
        batch_size: int = BATCH_SIZE,
        bf16: bool = False,
        seed: int = 0,
    ) -> None:
        checks.instance("model", model, nn.Module)
        if not callable(tokenizer):
            raise TypeError(f"tokenizer must be a tokenizer; got {type(tokenizer).__name__}")
        check_vocabulary(model, tokenizer)
        check_samples(samples)
        if seconds is not None:
            checks.positive("seconds", seconds)
        checks.choice("weighting", weighting, get_args(Weighting))
        checks.positive("temperature", temperature)
        checks.at_least("seed", seed, 0)
        self.samples, self.seconds = samples, seconds
        self.temperature, self.weighting, self.seed = temperature, weighting, seed
        self.max_length = resolve_max_length(model, tokenizer, max_length)
        set_padding(model, tokenizer)
        head, self.game_error = choose_game_head(model, game, masking)
        usual: Masking = "attention" if head is None else head.config.masking
        how: Masking | Hide = usual if masking is None else masking
        with evaluation_mode(model):  # afterwards the model is in its former mode
            self.classifier = MaskedClassifier(model, tokenizer, how, batch_size, bf16)
        self.grounded = None if head is None else self._with_game(head)
        self.additive = load_additive(additive, self.classifier)

    @classmethod
    def from_pretrained(
        cls, path_or_hub_id: str | Path, device: torch.device | str | None = None, **options: Any
    ) -> "Explainer":
        """A saved classifier with its game, if its folder holds one; options: those of the constructor."""
        return cls(*load_classifier(path_or_hub_id, device=device), **options)

    @classmethod
    def from_function(
        cls,
        function: Function,
        names: Sequence[str],
        *,
        outputs: Outputs | None = None,
        mask: str | None = None,
        **options: Any,
    ) -> "Explainer":
        """Any function from a list of texts (or of pairs) to a row of answers for each: it is explained by masking.

        names: of the answers. outputs: "classes", whose probabilities sum to 1, "labels" or "scores"; by default scores
        for one name and classes for several. Hidden words are left out, or replaced by `mask`. options: those of the
        constructor.
        """
        usual = {"masking": "delete" if mask is None else "token"}
        return cls(*function_classifier(function, names, outputs=outputs, mask=mask), **usual | options)

    @property
    def model(self) -> "PreTrainedModel":
        """The classifier."""
        model: PreTrainedModel = self.classifier.model
        return model

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """Its tokenizer."""
        tokenizer: PreTrainedTokenizerBase = self.classifier.tokenizer
        return tokenizer

    @overload
    def __call__(self, text: str, text_pair: str | None = None, **call: Unpack[CallOptions]) -> Explanation: ...

    @overload
    def __call__(
        self,
        text: list[str] | tuple[str, ...],
        text_pair: list[str] | tuple[str, ...] | None = None,
        **call: Unpack[CallOptions],
    ) -> list[Explanation]: ...

    def __call__(
        self,
        text: str | Sequence[str],
        text_pair: str | Sequence[str] | None = None,
        *,
        method: str = "auto",
        target: Target | Sequence[Target] | None = None,
        against: Target | Sequence[Target] | None = None,
        passes: int = 0,
        until: float | None = None,
        players: Players = "words",
    ) -> Explanation | list[Explanation]:
        """The explanation of one text or pair, or a list of them for lists.

        method: "auto" is `shapley` where the classifier has a game and `kernel-shap` where not; `methods()` lists what
        this classifier offers. target: the class to explain, by name or number; by default the predicted one, of
        several labels the most probable. against: explain why `target` and not this class, by the difference of both.
        passes: masked passes for each text. They correct the values of a game, and are what sampling methods spend; 0
        stands for the method's own number. until: spend passes until, with 95% confidence, no word's value is off by
        more. players: "words"; "sentences"; "hierarchical", for long texts: the words of the strongest sentences, the
        other sentences whole; or spans of your own, (from, to) in characters: a list for a text, two for a pair, and
        for several texts a list of these. What is in no span is always read.
        """
        texts = as_texts(text, text_pair)
        context = self.context(passes=passes, until=until)
        chosen = self._method(method, context)
        if (passes or until is not None) and not chosen.sampled:
            raise ValueError(f"passes and until mean nothing to method {chosen.name!r}, which samples nothing")
        classes = class_indices(target, against, context.labels, len(texts))
        playing = as_players(players, texts, isinstance(text, str))
        with evaluation_mode(self.model):
            explanations = explain_batches(chosen, context, texts, classes, playing, self.max_length)
        if method == "auto" and self.grounded is None and not isinstance(self.classifier.model, FunctionModel):
            explanations = [replace(each, notes=(*each.notes, NO_GAME)) for each in explanations]
        return explanations[0] if isinstance(text, str) else explanations

    def by_label(
        self, text: str, text_pair: str | None = None, *, threshold: float = ON, **call: Unpack[CallOptions]
    ) -> dict[str, Explanation]:
        """An explanation for every label that is on, the most probable first; empty where none is.

        For models of several labels; threshold: the probability from which on a label is on; call: options of a call.
        """
        if self.classifier.outputs != "labels":
            raise ValueError(f"by_label is for models of several labels at once; got one of {self.classifier.outputs}")
        check_label_call(text, threshold, call)
        words = split_rows(self.tokenizer, as_texts(text, text_pair), self.max_length, [0])
        with evaluation_mode(self.model):
            shares = self.classifier.full_probabilities(words)[0].cpu()
        on = [index for index in shares.argsort(descending=True).tolist() if float(shares[index]) >= threshold]
        if not on:
            return {}
        second = None if text_pair is None else [text_pair] * len(on)
        options: CallOptions = {**call, "target": on}
        if "players" in call and not isinstance(call["players"], str):
            options["players"] = [call["players"]] * len(on)
        return {each.target: each for each in self([text] * len(on), second, **options)}

    def methods(self) -> list[str]:
        """The names of the methods that this classifier can be explained by."""
        return available_methods(self.context())

    def scorer(self, method: str, *, passes: int = 0, seed: int | None = None) -> Scorer:
        """The scores of one method, `scorer(words) -> (B, W)`, as `spinformer.evaluate` measures them.

        They come from the model in evaluation mode; it is left in its own.
        """
        context = self.context(passes=passes, seed=seed)
        return in_evaluation(self._method(method, context).scorer(context), self.model)

    def context(self, *, passes: int = 0, until: float | None = None, seed: int | None = None) -> Context:
        """What a method needs for one call: the classifier, its game and the options."""
        checks.at_least("passes", passes, 0)
        if seed is not None:
            checks.at_least("seed", seed, 0)
        if until is not None:
            checks.positive("until", until)
        own = (self.temperature, self.weighting, self.seed if seed is None else seed, self.game_error, self.seconds)
        return Context(self.classifier, self.grounded, self.additive, passes, until, *own)

    def ground(
        self,
        texts: Corpus,
        output: Path | str | None = None,
        *,
        resume: bool = False,
        **options: Any,
    ) -> "Explainer":
        """Learn the classifier's game from texts without labels; the classifier's weights stay as they are.

        texts: texts, pairs of texts, a file, or a named set such as "snli:train"; or a stream of them, which may be
        larger than memory (`spinformer.data.stream_texts`, `stream_rows`) and is read until more of it no longer helps.
        output: the folder for the game head; in the model's own folder every `Explainer` finds it. Without `output`
        only this explainer has the game. resume: continue from the checkpoint that a stopped run left there; without it
        its folder is refused. A tenth of the texts, at most 200, is held out, to measure how far the game is from the
        classifier; below ten none is. options: those of `spinformer.training.game.GroundingOptions`; masking and
        max_length are this explainer's unless given. Returns this explainer, which now explains by its game.
        """
        if resume and output is None:
            raise ValueError("resume needs output, the folder that holds the checkpoint of the stopped run")
        if isinstance(self.classifier.model, FunctionModel):
            raise ValueError("a game needs the states of a model, which a function does not show")
        names = [option.name for option in fields(GroundingOptions)]
        unknown = sorted(set(options) - set(names))
        if unknown:
            raise TypeError(f"unknown option(s) {', '.join(unknown)}; there are: {', '.join(names)}")
        inherited = {"masking": self.classifier.masking, "max_length": self.max_length}
        settings = GroundingOptions(**{**inherited, **options})
        training, held_out = hold_out(grounding_texts(texts), settings.seed)
        hide = self.classifier.hide if settings.masking == "own" else None
        train = partial(train_game_head, self.model, self.tokenizer, training, hide=hide)
        with evaluation_mode(self.model):
            if output is not None:
                head = train(Path(output), settings, held_out=held_out, resume=resume)
            else:
                with tempfile.TemporaryDirectory() as folder:
                    head = train(Path(folder), settings, held_out=held_out)
            if settings.masking != self.classifier.masking:
                batch_size, bf16 = self.classifier.batch_size, self.classifier.bf16
                self.classifier = MaskedClassifier(self.model, self.tokenizer, settings.masking, batch_size, bf16)
        self.grounded, self.game_error = self._with_game(head), None
        return self

    def save(self, folder: Path | str) -> Path:
        """The classifier, its tokenizer and its game in one folder, which `from_pretrained` reads."""
        checks.instance("folder", folder, str, Path)
        folder = Path(folder)
        save_model(self.model, self.tokenizer, folder)
        if self.grounded is not None and self.grounded.head is not built_in_game(self.model):
            self.grounded.head.save(folder)
        return folder

    def _with_game(self, head: GameHead) -> GroundedClassifier:
        return GroundedClassifier(self.model, head, self.samples)

    def _method(self, name: str, context: Context) -> Method:
        """The method of this name, or a ValueError that says what the classifier lacks for it."""
        if name == "auto" and self.game_error is not None:
            raise ValueError(f"{self.game_error}, or choose a method that needs no game")
        if name == "auto":
            name = "kernel-shap" if self.grounded is None else "shapley"
        method = get_method(name)
        lacking = method.missing(context)
        if lacking is not None:
            raise ValueError(lacking)
        return method
