"""Save a model and its tokenizer: every file is written whole, and may be read by whom the user's umask allows."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from spinformer._base.files import atomic_write


def save_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Both in one folder, as `save_pretrained` writes them; the weights come last."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".saving-", dir=folder) as name:
        written = Path(name)
        model.save_pretrained(written)
        tokenizer.save_pretrained(written)
        files = [path for path in written.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: (path.suffix == ".safetensors", path.name)):
            with atomic_write(folder / path.relative_to(written)) as partial:
                shutil.move(path, partial)
