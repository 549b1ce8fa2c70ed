"""Save a model and its tokenizer: every file is written whole, and may be read by whom the user's umask allows."""

from pathlib import Path
from typing import Any

from spinformer._base.files import atomic_files
from spinformer.models.functions import FunctionModel
from spinformer.models.loading import quiet_transformers
from spinformer.models.rounding import round_file


def save_model(model: Any, tokenizer: Any, folder: Path, *, rounded: bool = False) -> None:
    """Both in one folder, as `save_pretrained` writes them; the weights come last.

    rounded: matrices in 8 bits (`spinformer.models.rounding`), which the models of this package read.
    """
    if not hasattr(model, "save_pretrained"):
        what = "a function" if isinstance(model, FunctionModel) else f"a {type(model).__name__}"
        raise ValueError(f"expected a Hugging Face model, which can be saved; {what} cannot")
    if hasattr(model, "get_base_model") and not getattr(model.get_base_model(), "name_or_path", ""):
        raise ValueError("an adapter is saved without its base model, of which it needs the folder: save that first")
    with atomic_files(folder) as written, quiet_transformers():
        model.save_pretrained(written)
        if rounded:
            round_file(written / "model.safetensors")
        tokenizer.save_pretrained(written)
