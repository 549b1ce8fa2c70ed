"""A web page, served from this machine: which words decided, and digits through the attractor.

MODEL is a folder with a classifier of sentence pairs and its game (`spinformer ground` makes one for any Hugging Face
classifier). Without --model it is the folder that SPINFORMER_MODEL names, or the only one in checkpoints/. The page
needs no network. It is served to this machine alone unless --host says otherwise; there is no password.
"""

import argparse
import os

import torch


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", metavar="MODEL", help="the folder; default: the only one in checkpoints/")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1, this machine)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0, help="of the attractor's training (default 0)")


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from spinformer.app import Classifier, build, limits, serve
    from spinformer.app.digits import Digits
    from spinformer.extras import require
    from spinformer.models.shipped import default_model

    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    require("gradio", extra="app")
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // limits.AT_ONCE))
    classifier = Classifier.load(args.model or default_model(), args.device)
    serve(build(classifier, Digits(seed=args.seed)), host=args.host, port=args.port)
    return 0
