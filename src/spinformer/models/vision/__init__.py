"""Models of images: the attractor network and the two transformers it is measured against."""

from spinformer.models.vision.attractor import AttractorConfig, AttractorNetwork
from spinformer.models.vision.transformer import RecurrentTransformer, VisionTransformer

__all__ = ["AttractorConfig", "AttractorNetwork", "RecurrentTransformer", "VisionTransformer"]
