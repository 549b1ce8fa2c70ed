"""Train a classifier by a recipe: data, model, Trainer, checkpoints, and a folder that others can load."""

import json
import shutil
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from transformers import AutoTokenizer, PreTrainedModel, TrainingArguments, set_seed

from spinformer.data.features import Features
from spinformer.data.named import load_texts
from spinformer.data.texts import Texts
from spinformer.models.encoders import encoder_path
from spinformer.models.masked import MaskedClassifier
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.models.predict import fits
from spinformer.models.words import corpus_words, from_vectors
from spinformer.training.card import write_card
from spinformer.training.ground import Grounding, learn
from spinformer.training.recipe import WORD_HEADS, Recipe
from spinformer.training.teacher import load_reader, teach
from spinformer.training.trainer import COMPLETE, ClassifierTrainer, step_of, uncompiled
from spinformer.whole import whole

RECORD = "training.json"
BEGUN = "recipe.json"


def train(recipe: Recipe, output: Path, *, resume: bool = False, quiet: bool = False) -> dict[str, Any]:
    """Train by `recipe` and leave in `output`: the model, its tokenizer, README.md, training.json, TensorBoard logs.

    resume: go on from the newest whole checkpoint in `output`, to the same weights as if never stopped; without it, a
    folder that already holds a run is refused. Returns what training.json holds.
    """
    checkpoint = _checkpoint(recipe, output, resume)
    train_texts, dev_texts = _texts(recipe)
    args = _arguments(recipe, output, quiet)
    set_seed(recipe.seed)
    model, tokenizer = build(recipe, train_texts)
    fits(model, tokenizer, recipe.max_length)
    train_data = _features(recipe, train_texts, model, tokenizer)
    dev_data = Features(dev_texts, tokenizer, recipe.max_length)
    if len(train_data) < recipe.batch_size:
        raise ValueError(f"batch_size {recipe.batch_size} is more than the {len(train_data)} training rows")
    set_seed(recipe.seed)
    trainer = ClassifierTrainer(model, recipe, args, train_data, dev_data, tokenizer)
    _claim(recipe, output)
    trainer.go_on(checkpoint)
    if trainer.average is not None:
        trainer.average.keep()
    if recipe.settle and trainer.is_world_process_zero():
        _settle(recipe, model, tokenizer, train_texts)
    record = {
        "recipe": recipe.to_dict(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "pairs": len(train_texts.distinct()),
        "rows": len(train_data),
        "dropped": train_texts.dropped,
        "truncated": train_data.truncated,
        "data": dict(train_texts.digests + dev_texts.digests),
        "seconds": trainer.seconds,
        "processes": args.world_size,
        "device": torch.cuda.get_device_name() if args.device.type == "cuda" else args.device.type,
        "resumed": checkpoint is not None,
        "history": trainer.state.log_history,
    }
    if trainer.is_world_process_zero():
        model.config.dtype = "float32"
        model.save_pretrained(output)
        tokenizer.save_pretrained(output)
        (output / RECORD).write_text(json.dumps(record, indent=1) + "\n")
        write_card(output, record)
    return record


def lesson(recipe: Recipe) -> None:
    """Have the recipe's teacher answer now; what it says is kept in its folder for the runs that follow."""
    texts, _ = _texts(recipe)
    model, tokenizer = build(recipe, texts)
    _features(recipe, texts, model, tokenizer)


def build(recipe: Recipe, texts: Texts) -> tuple[PreTrainedModel, Any]:
    """The model and the tokenizer of a recipe, for the classes of these texts (and their words, for dam and esim)."""
    if recipe.head in WORD_HEADS and recipe.vectors is not None:
        return from_vectors(
            recipe.vectors,
            recipe.head,
            labels=texts.names,
            corpus_words=corpus_words(chain(texts.first, texts.second or ())),
            vector_length=recipe.vector_length,
            seed=recipe.seed,
            dropout=recipe.dropout,
        )
    path = encoder_path(recipe.encoder)
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = NeuroGameForSequenceClassification.from_encoder(
        path,
        num_labels=len(texts.names),
        labels=texts.names,
        head=recipe.head,
        residual=recipe.residual,
        classifier_layers=recipe.classifier_layers,
        dropout=recipe.dropout,
        encoder_dropout=recipe.encoder_dropout,
        special_ids=_added_ids(tokenizer),
        layers=recipe.layers,
        grounding=recipe.grounding,
        **(recipe.game if recipe.head in ("neurogame", "joint") else {}),
    )
    return model, tokenizer


def _added_ids(tokenizer: Any) -> tuple[int, ...]:
    """Tokens that the tokenizer adds around and between texts; not those that stand for words, as the unknown does."""
    ids = (getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "sep", "pad", "bos", "eos"))
    return tuple(dict.fromkeys(found for found in ids if found is not None))


def last_checkpoint(output: Path) -> Path | None:
    """The newest checkpoint that was written to its end, if there is one."""
    whole = [path.parent for path in output.glob(f"checkpoint-*/{COMPLETE}")]
    return max(whole, key=step_of, default=None)


def _checkpoint(recipe: Recipe, output: Path, resume: bool) -> Path | None:
    """Where to go on from; the recipe that a folder was begun with stays with it."""
    kept = output / BEGUN
    if kept.is_file():
        if not resume:
            raise FileExistsError(f"{output} already holds a run; resume it, or name another folder")
        begun = Recipe.of(json.loads(kept.read_text()), source=str(kept)).to_dict()
        changed = [name for name, value in recipe.to_dict().items() if begun[name] != value]
        if changed:
            raise ValueError(f"{output} was begun with another recipe; these differ: {', '.join(changed)}")
        return last_checkpoint(output)
    return None


def _claim(recipe: Recipe, output: Path) -> None:
    """From here on the folder holds a run. What a killed process left half-written goes: it would push whole
    checkpoints out of the few that are kept.
    """
    PartialState().wait_for_everyone()  # every process has seen the folder as it was
    if PartialState().is_main_process:
        with whole(output / BEGUN) as begun:
            begun.write_text(json.dumps(recipe.to_dict(), indent=1) + "\n")
        for folder in output.glob("checkpoint-*"):
            if not (folder / COMPLETE).is_file():
                shutil.rmtree(folder)
    PartialState().wait_for_everyone()


def _settle(recipe: Recipe, model: PreTrainedModel, tokenizer: Any, texts: Texts) -> None:
    """The game learns on from the model as it now is: while both were learning it followed one that moved, and saw
    tokens taken away where words are asked about."""
    rows = texts.distinct()
    options = Grounding(
        epochs=recipe.settle,
        batch_size=min(256, recipe.batch_size, len(rows)),
        max_length=recipe.max_length,
        seed=recipe.seed,
    )
    classifier = MaskedClassifier(model, tokenizer, "attention", batch_size=1024)
    head: Any = model.game
    with uncompiled(recipe):
        learn(head, classifier, texts.select(rows), options)


def _features(recipe: Recipe, texts: Texts, model: PreTrainedModel, tokenizer: Any) -> Features:
    if recipe.teacher is None:
        return Features(texts, tokenizer, recipe.max_length)
    return teach(
        texts,
        recipe.teacher,
        model,
        tokenizer,
        weight=recipe.teacher_weight,
        copies=recipe.views,
        max_length=recipe.max_length,
        reader=None if recipe.near is None else load_reader(encoder_path(recipe.near, "near"), recipe.max_length),
    )


def _texts(recipe: Recipe) -> tuple[Texts, Texts]:
    load = partial(load_texts, first=recipe.first, second=recipe.second, label=recipe.label)
    train_texts = load(recipe.train, names=tuple(recipe.names) or None)
    dev_texts = load(recipe.dev, names=train_texts.names)
    if recipe.limit is not None and recipe.limit < len(train_texts):
        order = torch.randperm(len(train_texts), generator=torch.Generator().manual_seed(recipe.seed))
        train_texts = train_texts.select(order[: recipe.limit].tolist())
    return train_texts, dev_texts


def _arguments(recipe: Recipe, output: Path, quiet: bool) -> TrainingArguments:
    cuda = torch.cuda.is_available()
    bfloat16 = recipe.precision == "bfloat16" or (
        recipe.precision == "auto" and cuda and torch.cuda.is_bf16_supported()
    )
    # Knows how many processes there are; on CPUs, only if it is told that it is on CPUs.
    probe = TrainingArguments(output_dir=str(output), report_to="none", use_cpu=not cuda)
    parts = probe.world_size * recipe.accumulation
    if recipe.batch_size % parts:
        raise ValueError(
            f"batch_size {recipe.batch_size} must divide by {parts}, the {probe.world_size} process(es) times "
            f"accumulation {recipe.accumulation}"
        )
    args = TrainingArguments(
        output_dir=str(output),
        per_device_train_batch_size=recipe.batch_size // parts,
        per_device_eval_batch_size=256 if cuda else 64,
        gradient_accumulation_steps=recipe.accumulation,
        num_train_epochs=recipe.epochs,
        max_steps=recipe.steps or -1,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        max_grad_norm=recipe.clip,
        seed=recipe.seed,
        data_seed=recipe.seed,
        bf16=bfloat16,
        tf32=True if cuda else None,
        eval_strategy="epoch",
        save_strategy="epoch" if recipe.save_steps is None else "steps" if recipe.save_steps else "no",
        save_steps=recipe.save_steps or 500,
        save_total_limit=2,
        logging_steps=recipe.log_steps,
        logging_nan_inf_filter=False,
        report_to=["tensorboard"] if find_spec("tensorboard") else "none",
        dataloader_num_workers=recipe.workers,
        accelerator_config={"non_blocking": cuda},  # the next batch is on its way while a GPU works
        remove_unused_columns=False,
        label_names=["labels"],
        disable_tqdm=quiet,
        ddp_find_unused_parameters=False,
        use_cpu=not cuda,
    )
    args._n_gpu = min(args.n_gpu, 1)  # one device a process: several need several processes
    return args
