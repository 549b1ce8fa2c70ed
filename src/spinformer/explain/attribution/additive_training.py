"""Training of an additive explainer: steps over texts and coalitions within a budget of passes, and resuming.

Every random choice is drawn from (seed, epoch) or (seed, step), so a run that was stopped and resumed walks the same
path as one that was not.
"""

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from tqdm.auto import tqdm

from spinformer import checks
from spinformer.data.features import LengthSampler
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split
from spinformer.explain.attribution.shapley import kernel_coalitions
from spinformer.rng import draw_seed, uniforms
from spinformer.whole import whole

if TYPE_CHECKING:
    from spinformer.explain.attribution.additive import AdditiveExplainer

WARMUP = 0.05


def fit(
    explainer: "AdditiveExplainer",
    texts: Texts,
    *,
    passes: int,
    max_length: int,
    batch_size: int,
    coalitions: int,
    learning_rate: float,
    seed: int,
    checkpoint: Path | None,
    save_every: int,
    quiet: bool,
) -> dict[str, Any]:
    """Train `explainer.network` in place; returns a record: settings, steps, passes, losses, seconds of this call.

    passes: the budget; a step of `batch_size` texts spends coalitions + 2 passes on each: one over the whole text, one
    over nothing, and `coalitions` drawn in pairs of complements. AdamW, warmed up over 5% of the steps, then down to 0
    as a cosine. With `checkpoint`, state is written there every `save_every` steps, at the end and on interruption,
    and a run that finds it goes on from it, to the same weights. loss: means over spans of `save_every` steps.
    """
    for name, value in (("max_length", max_length), ("batch_size", batch_size), ("save_every", save_every)):
        checks.at_least(name, value, 1)
    checks.positive("learning_rate", learning_rate)
    if isinstance(coalitions, bool) or not isinstance(coalitions, int) or coalitions < 2 or coalitions % 2:
        raise ValueError(f"coalitions must be even and at least 2, since they come in pairs; got {coalitions!r}")
    if not len(texts):
        raise ValueError(f"{texts.source}: no texts to learn from")
    batch_size = min(batch_size, len(texts))
    per_step = batch_size * (coalitions + 2)
    steps = passes // per_step
    if not steps:
        raise ValueError(f"passes must suffice for a step, {per_step}; got {passes}")
    settings = {
        "passes": steps * per_step,
        "steps": steps,
        "max_length": max_length,
        "batch_size": batch_size,
        "coalitions": coalitions,
        "learning_rate": learning_rate,
        "seed": seed,
        "texts": len(texts),
        "digest": texts.fingerprint(),
    }
    run = _Run(explainer, settings, texts)
    described = json.dumps({"options": explainer.options(), **settings})
    if checkpoint is not None and checkpoint.is_file():
        run.restore(checkpoint, described)
    start = time.perf_counter()
    bar = tqdm(
        total=steps,
        initial=run.done,
        desc="explainer",
        unit="step",
        mininterval=0.5,
        dynamic_ncols=True,
        leave=False,
        disable=True if quiet else None,
    )
    try:
        while run.done < steps:
            run.step()
            bar.update()
            if run.done % save_every == 0 or run.done == steps:
                bar.set_postfix(loss=f"{run.close_span():.3g}")
                if checkpoint is not None:
                    run.write(checkpoint, described)
    except KeyboardInterrupt:
        if checkpoint is not None:
            run.write(checkpoint, described)
        raise
    finally:
        bar.close()
        explainer.network.eval()
    return {**settings, "loss": run.losses, "seconds": time.perf_counter() - start}


class _Run:
    """One training run: where it stands, and its next step."""

    def __init__(self, explainer: "AdditiveExplainer", settings: dict[str, Any], texts: Texts) -> None:
        self.explainer, self.settings, self.texts = explainer, settings, texts
        self.network = explainer.network.train()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=settings["learning_rate"], weight_decay=0.01)
        pairs = zip(texts.first, texts.second or [""] * len(texts), strict=True)
        lengths = torch.tensor([len(first) + len(second) for first, second in pairs])
        self.sampler = LengthSampler(lengths, settings["batch_size"], settings["seed"])
        self.done, self.losses, self.span = 0, list[float](), list[Tensor]()
        self.epoch, self.order = -1, list[int]()

    def step(self) -> None:
        words = self._words()
        classifier = self.explainer.classifier
        generator = torch.Generator().manual_seed(1_000_003 * self.settings["seed"] + self.done)
        asked = self._coalitions(words, draw_seed(generator))
        full, states = self.explainer.look(words)
        nothing = torch.zeros_like(words.mask[:, None])
        found = classifier.probabilities(words, torch.cat([nothing, asked], 1))
        empty, values = found[:, 0], found[:, 1:]
        self._schedule()
        phi = self.network(states, words, full - empty)
        error = values - empty[:, None] - asked.to(phi.dtype) @ phi  # (B, K, classes)
        if self.explainer.classes == "decided":
            target = full.argmax(-1)[:, None, None].expand(-1, error.shape[1], 1)
            error = error.gather(2, target)
        loss = error.square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.done += 1
        self.network.empty += (empty.mean(0) - self.network.empty) / self.done
        self.span.append(loss.detach())

    def close_span(self) -> float:
        self.losses.append(torch.stack(self.span).mean().item())
        self.span = []
        return self.losses[-1]

    def _words(self) -> Words:
        """The texts of the next step."""
        size = self.settings["batch_size"]
        epoch, place = divmod(self.done * size, len(self.sampler))
        if epoch != self.epoch:
            self.sampler.set_epoch(epoch)
            self.epoch, self.order = epoch, list(self.sampler)
        classifier = self.explainer.classifier
        part = self.texts.select(self.order[place : place + size])
        return split(classifier.tokenizer, part, self.settings["max_length"]).to(classifier.device)

    def _coalitions(self, words: Words, seed: Tensor) -> Tensor:
        """Drawn by Shapley's kernel, each followed by its complement: (B, K, W)."""
        batch, most = words.mask.shape
        numbers = uniforms(seed, batch, self.settings["coalitions"] // 2, most + 1, words.mask.device)
        drawn = kernel_coalitions(numbers, words.counts)
        return torch.stack([drawn, words.mask[:, None] & ~drawn], 2).flatten(1, 2)

    def _schedule(self) -> None:
        steps = self.settings["steps"]
        warmup = max(1, round(WARMUP * steps))
        left = (self.done - warmup) / max(1, steps - warmup)
        part = (self.done + 1) / warmup if self.done < warmup else (1 + math.cos(math.pi * left)) / 2
        for group in self.optimizer.param_groups:
            group["lr"] = part * self.settings["learning_rate"]

    def write(self, path: Path, described: str) -> None:
        state = {
            "run": described,
            "done": self.done,
            "losses": self.losses,
            "span": self.span,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        with whole(path) as partial:
            torch.save(state, partial)

    def restore(self, path: Path, described: str) -> None:
        saved = torch.load(path, map_location=self.explainer.classifier.device, weights_only=True)
        if saved["run"] != described:
            begun, asked = json.loads(saved["run"]), json.loads(described)
            changed = ", ".join(name for name in asked if begun.get(name) != asked[name])
            raise ValueError(f"{path} was begun with other settings; these differ: {changed}")
        self.done, self.losses, self.span = saved["done"], saved["losses"], saved["span"]
        self.network.load_state_dict(saved["network"])
        self.optimizer.load_state_dict(saved["optimizer"])
