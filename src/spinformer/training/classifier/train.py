"""Train a classifier by a recipe: data, model, Trainer, checkpoints, and a folder that transformers can load."""
# ruff: noqa: E402

import json
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from spinformer._base.extras import require

require("transformers", extra="nli")
require("accelerate", extra="nli")

from accelerate import PartialState
from transformers import PreTrainedModel, TrainingArguments, set_seed

from spinformer._base import checks, records
from spinformer._base.files import atomic_text, json_object, regular, run_lock, sha256
from spinformer._base.rng import preserved
from spinformer.data.features import Features
from spinformer.data.sources import load_texts
from spinformer.data.texts import Texts
from spinformer.models.baselines import corpus_words, from_vectors
from spinformer.models.encoders import encoder_path
from spinformer.models.lengths import check_max_length
from spinformer.models.loading import load_tokenizer, quiet_transformers
from spinformer.models.masked import MaskedClassifier
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.models.pooling import POOLING_HEADS
from spinformer.models.saving import save_model
from spinformer.training.checkpoint import differences
from spinformer.training.classifier.checkpoints import last_checkpoint, remove_others
from spinformer.training.classifier.model_card import write_card
from spinformer.training.classifier.recipe import ClassifierRecipe
from spinformer.training.classifier.trainer import ClassifierTrainer, compile_disabled
from spinformer.training.distil import load_neighbour_model, teacher_features, weight_files
from spinformer.training.game_fit import fit_game_head
from spinformer.training.game_options import GroundingOptions

RECORD = "training.json"
RECIPE = "recipe.json"
DATA = "data.json"  # fingerprints of what the run learns from


def train_classifier(
    recipe: ClassifierRecipe, output: Path, *, resume: bool = False, quiet: bool = False
) -> dict[str, Any]:
    """Train by `recipe` and write to `output`: the model, its tokenizer, README.md, training.json, TensorBoard logs.

    resume: continue from the last complete checkpoint in `output`, to the weights of a run that was never stopped;
    without it, a folder that already holds a run is refused; with it, a folder of a run on other data. No other run may
    write to the folder meanwhile. Returns what training.json holds.
    """
    checks.instance("recipe", recipe, ClassifierRecipe)
    checks.instance("output", output, Path)
    with preserved(), ExitStack() as stack:
        if output.is_dir():
            stack.enter_context(run_lock(output))
        return _train(recipe, output, resume, quiet, stack)


def _train(recipe: ClassifierRecipe, output: Path, resume: bool, quiet: bool, stack: ExitStack) -> dict[str, Any]:
    """stack: holds the lock of the folder, from the moment that it exists."""
    checkpoint = _resume_checkpoint(recipe, output, resume)
    train_texts, dev_texts = _texts(recipe)
    data = _fingerprints(recipe, train_texts, dev_texts)
    _check_data(output, data)
    args = _arguments(recipe, output, quiet)
    set_seed(recipe.seed)
    model, tokenizer = build(recipe, train_texts)
    check_max_length(model, tokenizer, recipe.max_length)
    train_data = _features(recipe, train_texts, model, tokenizer)
    by_length = sorted(range(len(dev_texts)), key=dev_texts.lengths.__getitem__)  # batches with little padding
    dev_data = Features(dev_texts.select(by_length), tokenizer, recipe.max_length)
    if len(train_data) < recipe.batch_size:
        raise ValueError(f"batch_size {recipe.batch_size} is more than the {len(train_data)} training rows")
    set_seed(recipe.seed)
    trainer = ClassifierTrainer(model, recipe, args, train_data, dev_data, tokenizer)
    stack.enter_context(run_lock(output))
    _claim(recipe, output, data, checkpoint, resume)
    with quiet_transformers():
        trainer.train_from(checkpoint)
    if trainer.average is not None:
        trainer.average.copy_to_model()
    if recipe.settle and trainer.is_world_process_zero():
        _fit_game_head(recipe, model, tokenizer, train_texts)
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
        _check_finite(model)
        model.config.dtype = "float32"
        save_model(model, tokenizer, output)
        atomic_text(output / RECORD, json.dumps(records.finite(record), indent=1, allow_nan=False) + "\n")
        write_card(output, record)
    return record


def _check_finite(model: PreTrainedModel) -> None:
    for name, value in model.state_dict().items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise ValueError(f"the training diverged, {name} is not finite: no model was saved; a lower rate may help")


def store_teacher_features(recipe: ClassifierRecipe) -> None:
    """Compute the answers of the recipe's teacher now; they are stored in its folder for the runs that follow."""
    texts, _ = _texts(recipe)
    model, tokenizer = build(recipe, texts)
    _features(recipe, texts, model, tokenizer)


def build(recipe: ClassifierRecipe, texts: Texts) -> tuple[PreTrainedModel, Any]:
    """The model and the tokenizer of a recipe, for the classes of these texts (and, for a baseline, their words)."""
    if recipe.baseline is not None and recipe.vectors is not None:
        return from_vectors(
            recipe.vectors,
            recipe.baseline,
            labels=texts.names,
            corpus_words=corpus_words(chain(texts.first, texts.second or ())),
            vector_length=recipe.vector_length,
            seed=recipe.seed,
            dropout=recipe.dropout,
        )
    path = encoder_path(recipe.encoder)
    tokenizer = load_tokenizer(path)
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
        grounding=recipe.grounding,
        **(recipe.game if POOLING_HEADS[recipe.head].uses_layer else {}),
    )
    return model, tokenizer


def _added_ids(tokenizer: Any) -> tuple[int, ...]:
    """Tokens that the tokenizer adds around and between texts; not the unknown token, which stands for words."""
    ids = (getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "sep", "pad", "bos", "eos"))
    return tuple(dict.fromkeys(token for token in ids if token is not None))


def _resume_checkpoint(recipe: ClassifierRecipe, output: Path, resume: bool) -> Path | None:
    """The checkpoint to continue from; the folder of a run of another recipe is refused."""
    stored = output / RECIPE
    if not regular(stored).is_file():
        return None
    if not resume:
        raise FileExistsError(f"{output} already holds a run; resume it, or name another folder")
    begun = ClassifierRecipe.of(json_object(stored), source=str(stored), stored=True)
    changed = differences(begun.to_dict(), recipe.to_dict())
    if changed:
        raise ValueError(f"{output} was begun with another recipe; these differ: {', '.join(changed)}")
    return last_checkpoint(output)


def _fingerprints(recipe: ClassifierRecipe, train: Texts, dev: Texts) -> dict[str, Any]:
    """Of everything that is learnt from and scored on: texts with their labels, the teacher, word vectors."""
    files = [] if recipe.teacher is None else weight_files(Path(recipe.teacher))
    files += [] if recipe.vectors is None else [Path(recipe.vectors)]
    return {
        "train": train.fingerprint(labelled=True),
        "dev": dev.fingerprint(labelled=True),
        "files": {path.name: sha256(path) for path in files if path.is_file()},
    }


def _check_data(output: Path, data: dict[str, Any]) -> None:
    """The folder of a run on other data is refused; runs of earlier versions did not store what they were on."""
    if (output / RECIPE).is_file() and regular(output / DATA).is_file():
        changed = differences(json_object(output / DATA), data)
        if changed:
            raise ValueError(f"{output} was begun with other data; these differ: {', '.join(changed)}")


def _claim(recipe: ClassifierRecipe, output: Path, data: dict[str, Any], checkpoint: Path | None, resume: bool) -> None:
    """Mark the folder as that of this run, and delete checkpoints that it does not go on from."""
    PartialState().wait_for_everyone()  # every process has read the folder as it was
    if PartialState().is_main_process:
        if not resume and (output / RECIPE).is_file():
            raise FileExistsError(f"another run has begun in {output} meanwhile; name another folder")
        atomic_text(output / DATA, json.dumps(data, indent=1) + "\n")
        atomic_text(output / RECIPE, json.dumps(recipe.to_dict(), indent=1) + "\n")
        remove_others(output, checkpoint)
    PartialState().wait_for_everyone()


def _fit_game_head(recipe: ClassifierRecipe, model: PreTrainedModel, tokenizer: Any, texts: Texts) -> None:
    """Train the game head on the final model.

    Before, it followed a model that still changed, and coalitions were of tokens; explanations ask about words.
    """
    rows = texts.distinct()
    options = GroundingOptions(
        epochs=recipe.settle,
        batch_size=min(256, recipe.batch_size, len(rows)),
        repeats=1,
        optimizer="adamw",
        learning_rate=1e-3,
        weight_decay=0.01,
        max_length=recipe.max_length,
        seed=recipe.seed,
    )
    classifier = MaskedClassifier(model, tokenizer, "attention", batch_size=1024)
    head: Any = model.game
    with compile_disabled(recipe):
        fit_game_head(head, classifier, texts.select(rows), options)


def _features(recipe: ClassifierRecipe, texts: Texts, model: PreTrainedModel, tokenizer: Any) -> Features:
    if recipe.teacher is None:
        return Features(texts, tokenizer, recipe.max_length)
    near = None if recipe.near is None else encoder_path(recipe.near, "near")
    return teacher_features(
        texts,
        recipe.teacher,
        model,
        tokenizer,
        weight=recipe.teacher_weight,
        copies=recipe.views,
        max_length=recipe.max_length,
        neighbour_model=None if near is None else load_neighbour_model(near, recipe.max_length),
    )


def _texts(recipe: ClassifierRecipe) -> tuple[Texts, Texts]:
    load = partial(load_texts, first=recipe.first, second=recipe.second, label=recipe.label)
    train_texts = load(recipe.train, names=tuple(recipe.names) or None)
    dev_texts = load(recipe.dev, names=train_texts.names)
    if recipe.limit is not None and recipe.limit < len(train_texts):
        order = torch.randperm(len(train_texts), generator=torch.Generator().manual_seed(recipe.seed))
        train_texts = train_texts.select(order[: recipe.limit].tolist())
    return train_texts, dev_texts


def _arguments(recipe: ClassifierRecipe, output: Path, quiet: bool) -> TrainingArguments:
    cuda = torch.cuda.is_available()
    bfloat16 = recipe.precision == "bfloat16" or (
        recipe.precision == "auto" and cuda and torch.cuda.is_bf16_supported()
    )
    # Knows the number of processes; without a GPU, only with use_cpu.
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
        accelerator_config={"non_blocking": cuda},  # the next batch is copied while a GPU computes
        remove_unused_columns=False,
        label_names=["labels"],
        disable_tqdm=quiet,
        ddp_find_unused_parameters=False,
        use_cpu=not cuda,
    )
    args._n_gpu = min(args.n_gpu, 1)  # one device for each process
    return args
