"""Train the network of the additive explainer (FastSHAP): steps over texts and coalitions within a budget of passes.

Every random choice is drawn from (seed, epoch) or (seed, step), so a resumed run ends at the weights of one that was
never stopped.
"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.progress import progress_bar
from spinformer._base.rng import draw_seed, uniforms
from spinformer.data.features import LengthSampler
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.games.coalitions import kernel_sizes, members
from spinformer.models.additive import AdditiveNetwork
from spinformer.models.masked import MaskedClassifier
from spinformer.training.checkpoint import Checkpoint, check_optimizer, check_step
from spinformer.training.schedule import schedule
from spinformer.training.seeding import step_generator

WARMUP = 0.05


def train_additive(
    network: AdditiveNetwork,
    classifier: MaskedClassifier,
    texts: Texts,
    *,
    passes: int,
    max_length: int = 128,
    batch_size: int = 32,
    coalitions: int = 8,
    learning_rate: float = 1e-3,
    seed: int = 0,
    checkpoint: Path | None = None,
    save_every: int = 200,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train `network` in place on texts, without labels; returns a record of settings, steps, passes, losses, seconds.

    passes: the budget, in forward passes of the classifier; a step of `batch_size` texts spends coalitions + 2 on each
    text: one over the full text, one over no words, and `coalitions` in pairs of complements. AdamW, with a warm-up
    over 5% of the steps and then a cosine down to 0. checkpoint: a file that is written every `save_every` steps, at
    the end and on Ctrl-C; a run that finds it continues from it, to the same weights. Each loss of the record is a
    mean over `save_every` steps.
    """
    checks.instance("network", network, AdditiveNetwork)
    checks.instance("classifier", classifier, MaskedClassifier)
    checks.instance("texts", texts, Texts)
    if checkpoint is not None:
        checks.instance("checkpoint", checkpoint, Path)
    counts = {"passes": passes, "max_length": max_length, "batch_size": batch_size, "save_every": save_every}
    for name, value in counts.items():
        checks.at_least(name, value, 1)
    checks.at_least("seed", seed, 0)
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
    run = _Run(network, classifier, texts, settings)
    file = Checkpoint(checkpoint, {"options": asdict(network.config), **settings})
    state = file.read(classifier.device)
    if state is not None:
        with file.restoring():
            run.restore(state)
    start = time.perf_counter()
    bar = progress_bar(steps, "explainer", done=run.done, quiet=quiet)
    try:
        with file.written_on_interrupt(run.state):
            while run.done < steps:
                run.step()
                bar.update()
                if run.done % save_every == 0 or run.done == steps:
                    bar.set_postfix(loss=f"{run.close_span():.3g}")
                    file.write(run.state())
    finally:
        bar.close()
        network.eval()
    return {**settings, "loss": run.losses, "seconds": time.perf_counter() - start}


class _Run:
    """One training run: its state, and its next step.

    done: steps so far; span: losses since the last mean; losses: the means.
    """

    def __init__(
        self, network: AdditiveNetwork, classifier: MaskedClassifier, texts: Texts, settings: dict[str, Any]
    ) -> None:
        self.classifier, self.settings, self.texts = classifier, settings, texts
        self.network = network.train()
        self.optimizer = torch.optim.AdamW(network.parameters(), lr=settings["learning_rate"], weight_decay=0.01)
        self.scheduler = schedule(self.optimizer, "cosine", settings["steps"], warmup=WARMUP, from_zero=False)
        self.sampler = LengthSampler(torch.tensor(texts.lengths), settings["batch_size"], settings["seed"])
        self.done, self.losses, self.span = 0, list[float](), list[Tensor]()
        self.epoch, self.order = -1, list[int]()

    def step(self) -> None:
        """loss = mean over texts, C and classes of (v(C) - v(nothing) - sum over i in C of phi_i)^2, v(C) = p(C)."""
        words = self._next_words()
        coalitions = self._coalitions(words, draw_seed(step_generator(self.settings["seed"], self.done)))  # (B, K, W)
        full, states = self.network.read(self.classifier, words)
        nothing = torch.zeros_like(words.mask[:, None])
        probabilities = self.classifier.probabilities(words, torch.cat([nothing, coalitions], 1))
        empty, values = probabilities[:, 0], probabilities[:, 1:]
        phi = self.network(states, words, full - empty)
        error = values - empty[:, None] - coalitions.to(phi.dtype) @ phi  # (B, K, classes)
        if self.network.config.classes == "decided":
            target = full.argmax(-1)[:, None, None].expand(-1, error.shape[1], 1)
            error = error.gather(2, target)
        loss = error.square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        self.done += 1
        self.network.empty += (empty.mean(0) - self.network.empty) / self.done
        self.span.append(loss.detach())

    def close_span(self) -> float:
        """The mean loss since the last call."""
        self.losses.append(torch.stack(self.span).mean().item())
        self.span = []
        return self.losses[-1]

    def _next_words(self) -> Words:
        """The texts of the next step."""
        size = self.settings["batch_size"]
        epoch, start = divmod(self.done * size, len(self.sampler))
        if epoch != self.epoch:
            self.sampler.set_epoch(epoch)
            self.epoch, self.order = epoch, list(self.sampler)
        batch = self.texts.select(self.order[start : start + size])
        return split_words(self.classifier.tokenizer, batch, self.settings["max_length"]).to(self.classifier.device)

    def _coalitions(self, words: Words, seed: Tensor) -> Tensor:
        """Drawn by Shapley's kernel, each followed by its complement: (B, K, W)."""
        mask = words.mask
        batch, width = mask.shape
        numbers = uniforms(seed, batch, self.settings["coalitions"] // 2, width + 1, mask.device)
        drawn = members(numbers[..., 1:], kernel_sizes(numbers[..., 0], words.counts, width), mask)
        return torch.stack([drawn, mask[:, None] & ~drawn], 2).flatten(1, 2)

    def state(self) -> dict[str, Any]:
        """What `restore` needs to continue to the same weights."""
        return {
            "done": self.done,
            "losses": self.losses,
            "span": self.span,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        groups = [dict(group) for group in self.optimizer.param_groups]
        self.done = check_step("done", state["done"], self.settings["steps"])
        self.losses, self.span = state["losses"], state["span"]
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        check_optimizer(self.optimizer, groups)
