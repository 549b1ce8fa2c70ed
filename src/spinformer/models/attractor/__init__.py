"""Models of images: the attractor network and the two transformers that it is compared with."""

from spinformer.models.attractor.network import AttractorConfig, AttractorNetwork, Dynamics
from spinformer.models.attractor.transformer import RecurrentTransformer, VisionTransformer

__all__ = ["AttractorConfig", "AttractorNetwork", "Dynamics", "RecurrentTransformer", "VisionTransformer"]
