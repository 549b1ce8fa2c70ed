"""`import spinformer.models` in fresh processes: the Auto classes know our models; transformers may be absent."""

from pathlib import Path

import pytest

from tests import fresh

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "checkpoints" / "neurogame-minilm-nli"


def run(code: str, imports: str = fresh.TORCH) -> str:
    """What a fresh interpreter prints."""
    done = fresh.run(code, imports=imports, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def without_transformers(code: str) -> str:
    return run("import sys\nsys.modules['transformers'] = sys.modules['tokenizers'] = None\n" + code)


def test_auto_classes_know_our_models():
    pytest.importorskip("transformers")
    code = f"""
import spinformer.models
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification
model = AutoModelForSequenceClassification.from_pretrained({str(CHECKPOINT)!r})
print(type(model).__name__, type(AutoConfig.for_model("neurogame")).__name__)
print(type(AutoConfig.for_model("spinformer-words")).__name__, type(AutoModel.from_config(model.config)).__name__)
"""
    assert run(code, fresh.TRANSFORMERS).splitlines() == [
        "NeuroGameForSequenceClassification NeuroGameConfig",
        "WordConfig NeuroGameModel",
    ]


def test_without_transformers_the_rest_imports():
    code = """
import spinformer.models
from spinformer.models import AttractorConfig, AttractorNetwork, GameHead, MaskedClassifier, load_classifier
from spinformer.models.attractor import VisionTransformer
from spinformer.models.pooling import POOLING_HEADS
from spinformer.models import encoders, predict, shipped
print(list(POOLING_HEADS)[0], AttractorNetwork(AttractorConfig()).config.patch)
"""
    assert without_transformers(code) == "neurogame 2"


@pytest.mark.parametrize(
    "code",
    [
        "from spinformer.models import NeuroGameConfig",
        "import spinformer.models; spinformer.models.NeuroGameForSequenceClassification",
        "import spinformer.models.neurogame.modeling",
        "import spinformer.models.baselines.vectors",
        "from spinformer.models import load_classifier; load_classifier('checkpoints/neurogame-minilm-nli')",
    ],
)
def test_without_transformers_its_extra_is_named(code):
    lines = without_transformers(
        f"try:\n    exec({code!r})\nexcept ModuleNotFoundError as error:\n    print(error)"
    ).splitlines()
    assert lines == ["transformers is not installed; `pip install 'spinformer[nli]'` brings it"]


def test_a_name_that_there_is_not():
    import spinformer.models

    with pytest.raises(AttributeError, match=r"module 'spinformer\.models' has no attribute 'NeuroGame'"):
        spinformer.models.NeuroGame  # noqa: B018
    assert all(hasattr(spinformer.models, name) for name in spinformer.models.__all__)
