"""Pretrained encoders by short name, for recipes: the rows of the NeuroGame paper's Table 5, and two smaller ones."""

from pathlib import Path

from spinformer.models.shipped import named_model, shipped_models

ENCODERS = {
    "bert-base": "google-bert/bert-base-uncased",
    "bert-large": "google-bert/bert-large-uncased",
    "roberta-base": "FacebookAI/roberta-base",
    "roberta-large": "FacebookAI/roberta-large",
    "albert-base": "albert/albert-base-v2",
    "albert-large": "albert/albert-large-v2",
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "mpnet": "sentence-transformers/all-mpnet-base-v2",
}


def encoder_path(name: str, option: str = "encoder") -> str:
    """The hub id of a short name, or the folder of a classifier of this package; a folder or a hub id as it is.

    option: its name in an error message.
    """
    if name in ENCODERS:
        return ENCODERS[name]
    own = named_model(name)
    if "/" not in own and not Path(own).is_dir():
        names = ", ".join([*ENCODERS, *shipped_models()])
        raise ValueError(f"{option} must be a folder, a hub id or one of {names}; got {name!r}")
    return own
