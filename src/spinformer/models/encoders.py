"""Pretrained encoders by short name, for recipes: the rows of the NeuroGame paper's Table 5, and two smaller ones."""

from pathlib import Path

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
    """The hub id of a short name; a folder or a hub id as it is. option: its name in an error message."""
    if name in ENCODERS:
        return ENCODERS[name]
    if "/" not in name and not Path(name).is_dir():
        raise ValueError(f"{option} must be a folder, a hub id or one of {', '.join(ENCODERS)}; got {name!r}")
    return name
