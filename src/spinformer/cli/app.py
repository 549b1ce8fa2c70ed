"""Serve a web page on this machine that explains a classifier and restores digits with an attractor network.

MODEL is a folder with a classifier and its game (`spinformer ground` learns one for any Hugging Face classifier); the
page speaks of its task: one text or two, classes, several labels or a score. Without --model it is the folder that the
environment variable SPINFORMER_MODEL names, or "small", which is part of this package. The page needs no network. It is
served to this machine alone unless --host says otherwise; there is no password.
"""

import argparse
import os

from spinformer._base.extras import require
from spinformer.cli.options import add_device


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--model", metavar="MODEL", help="folder of the classifier (default: see above)")
    parser.add_argument(
        "--texts",
        type=int,
        choices=(1, 2),
        default=0,
        help="how many texts the classifier reads (default: as many as its game was learnt from)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s, this machine)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    add_device(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of the attractor's training (default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    for library in ("gradio", "transformers"):
        require(library, extra="app")
    import torch

    from spinformer.app import Classifier, build, limits, serve
    from spinformer.app.digits import Digits
    from spinformer.models.shipped import default_model

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // limits.AT_ONCE))
    classifier = Classifier.load(args.model or default_model(), args.device, args.texts)
    serve(build(classifier, Digits(seed=args.seed)), host=args.host, port=args.port)
    return 0
