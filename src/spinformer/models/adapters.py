"""Classifiers with an adapter, such as LoRA, as peft saves them: its weights alone, and the name of the base model.

Only kinds of adapters that are weights for the layers of a model are read, from safetensors, and no option that names
code is followed.
"""

import json
import re
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from spinformer._base.extras import require
from spinformer._base.files import regular
from spinformer._base.rng import seeded
from spinformer.models.hub import check_source
from spinformer.models.pretrained import pretrained_classifier, pretrained_config
from spinformer.models.shipped import named_model
from spinformer.models.size_limits import WeightSizes, bounded_build, tensor_shapes, weight_paths

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
KINDS = ("LORA", "ADALORA", "LOHA", "LOKR", "IA3", "OFT")
EXTRA = "lora"  # the extra that brings peft
PREFIX = "base_model.model."  # of the weights' names
HEAD = re.compile(r"\.(classifier|score|logits_proj)(\.out_proj)?\.weight$")  # the layer that gives the logits


def adapter_options(source: str) -> dict[str, Any] | None:
    """adapter_config.json of a folder or of a name on the hub; None where it is a whole model or nothing."""
    if _file(source, "config.json") is not None or (path := _file(source, CONFIG)) is None:
        return None
    options = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(options, dict):
        raise ValueError(f"{source}: {CONFIG} must hold an object; got {type(options).__name__}")
    if (kind := options.get("peft_type")) not in KINDS:
        raise ValueError(f"{source}: expected an adapter of kind {', '.join(KINDS)}; got {kind!r:.60}")
    if options.get("task_type") not in (None, "SEQ_CLS"):
        raise ValueError(f"{source}: expected an adapter of a sequence classifier; got {options['task_type']!r:.60}")
    if options.get("megatron_config") is not None:
        raise ValueError(f"{source}: its {CONFIG} asks for code of Megatron, which is not run; expected none")
    if not isinstance(options.get("base_model_name_or_path"), str) or not options["base_model_name_or_path"]:
        raise ValueError(f"{source}: its {CONFIG} must name the base model; got none")
    return options


def base_of(options: dict[str, Any]) -> str:
    """The folder or name of the base model."""
    base = named_model(options["base_model_name_or_path"])
    check_source(base)
    return base


def adapted_classifier(source: str, options: dict[str, Any]) -> tuple[Any, dict[str, list[str]]]:
    """The base model with the adapter in `source`, whose options these are, and a report of weights as of transformers.

    The classes' layer is the adapter's where it brings one, and their number then is too.
    """
    peft, base, path = require("peft", extra=EXTRA), base_of(options), _file(source, WEIGHTS)
    if path is None:
        raise ValueError(f"{source}: expected the adapter's weights in {WEIGHTS}; there is no such file")
    shapes = tensor_shapes(regular(path))
    classes = [shape[0] for name, shape in shapes.items() if HEAD.search(name) and shape]
    known = pretrained_config(base).num_labels
    own = {"num_labels": classes[0]} if classes and classes[0] != known else {}
    model, report = pretrained_classifier(base, output_loading_info=True, ignore_mismatched_sizes=True, **own)
    named = {**options, "base_model_name_or_path": model.name_or_path, "inference_mode": True, "auto_mapping": None}
    config = peft.PeftConfig.from_peft_type(**named)
    sizes = WeightSizes.of_files([path, *weight_paths(base)])
    with seeded(0), bounded_build(source, sizes):  # the weights that are replaced at once
        model = peft.get_peft_model(model, config)
    loaded = peft.set_peft_model_state_dict(model, load_file(path))
    expected = set(peft.get_peft_model_state_dict(model, save_embedding_layers=False))
    model.name_or_path = source  # where its game lies
    return model, {
        "mismatched_keys": _left(report, "mismatched_keys", shapes),
        "missing_keys": [*_left(report, "missing_keys", shapes), *(expected - set(shapes))],
        "unexpected_keys": list(loaded.unexpected_keys),
    }


def has_tokenizer(source: str) -> bool:
    """Whether a tokenizer lies beside the adapter."""
    return _file(source, "tokenizer_config.json") is not None


def _left(report: dict[str, Any], kind: str, brought: dict[str, Any]) -> list[str]:
    """The weights of the base model of this kind that the adapter does not bring."""
    names = [name if isinstance(name, str) else str(name[0]) for name in report.get(kind) or ()]
    return [name for name in names if PREFIX + name not in brought]


def _file(source: str, name: str) -> Path | None:
    """A file of a folder, or of a name on the hub; None where there is none."""
    if Path(source).is_dir():
        path = Path(source) / name
        return regular(path) if path.exists() else None
    found = require("transformers.utils.hub", extra="nli").cached_file(
        source, name, _raise_exceptions_for_missing_entries=False, _raise_exceptions_for_connection_errors=False
    )
    return None if found is None else Path(found)
