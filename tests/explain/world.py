"""The state of the process and of a model that a caller may rely upon."""

import logging
import os
import random
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from transformers.utils import logging as transformers_logging


def hooks(model):
    """Those that spinformer left; transformers keeps some of its own from the first pass on."""
    every = [hook for module in model.modules() for hook in module._forward_hooks.values()]
    every += [hook for module in model.modules() for hook in module._forward_pre_hooks.values()]
    return [hook.__qualname__ for hook in every if getattr(hook, "__module__", "").startswith("spinformer")]


def snapshot(*models):
    """What must be the same before and after any call."""
    return {
        "torch": torch.get_rng_state().tolist(),
        "python": random.getstate(),
        "numpy": [np.asarray(part).tolist() for part in np.random.get_state()],  # noqa: NPY002
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "gradients": torch.is_grad_enabled(),
        "precision": (torch.get_float32_matmul_precision(), torch.get_default_dtype()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "transformers": (transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()),
        "logging": (logging.getLogger().level, logging.root.manager.disable),
        "warnings": list(warnings.filters),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "modes": [[module.training for module in model.modules()] for model in models],
        "weights": [{name: value.clone() for name, value in model.state_dict().items()} for model in models],
        "graph": [[parameter.requires_grad for parameter in model.parameters()] for model in models],
        "hooks": [hooks(model) for model in models],
    }


def assert_same(before, after):
    for name, value in before.items():
        if name == "weights":
            for one, other in zip(value, after[name], strict=True):
                assert all(torch.equal(tensor, other[key]) for key, tensor in one.items())
        else:
            assert value == after[name], f"{name} changed"


def at_once(calls, threads=6):
    """The results of these calls from so many threads, all of which begin together."""
    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]
