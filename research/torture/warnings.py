"""The library under `python -W error`, where a warning of anything that it uses is an exception.

The tests themselves run with warnings as errors (`filterwarnings` in pyproject.toml); here are whole commands, each in
a process of its own, with nothing excused.
"""

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from research.paths import ROOT
from research.torture.findings import Findings, Plan
from spinformer.models.shipped import default_model

# Triton comes with torch for a GPU alone, and only the code for GPUs imports it.
WALK = """
import importlib, importlib.util, pkgutil, spinformer
triton = importlib.util.find_spec("triton") is not None
for module in pkgutil.walk_packages(spinformer.__path__, "spinformer."):
    if not module.name.endswith("__main__") and (triton or not module.name.startswith("spinformer.kernels.device.")):
        importlib.import_module(module.name)
"""
LAYERS = """
import torch, spinformer
x = torch.randn(2, 6, 16, requires_grad=True)
spinformer.NeuroGameAttention(16, heads=2)(x).pooled.sum().backward()
spinformer.AttractorAttention(6, 16).step(x).sum().backward()
"""
# Short, since 2^words passes are asked of each.
PAIRS = (("A man sleeps.", "He is not awake.", "entailment"), ("A dog runs.", "A cat sits.", "contradiction"))
COMMANDS = (
    "explain {model} 'A man sleeps.' 'Nobody is awake.'",
    "explain {model} 'A man sleeps.' 'Nobody is awake.' --passes 32 --output {out}/report.html",
    "predict {model} sample:test --output {out}/answers.jsonl",
    "evaluate {model} sample:test --output {out}",
    "evaluate {model} {out}/pairs.jsonl --explanations --methods shapley kernel-shap leave-one-out --passes 32 "
    "--output {out}/faithful.json",
    "train attractor --limit 256 --epochs 1 --patch 7 --output {out}/net.safetensors",
    "retrieve {out}/net.safetensors --output {out}/pictures",
    "demo",
)


def run(plan: Plan) -> Findings:
    """Imports, layers and commands; none may warn."""
    found = Findings()
    with tempfile.TemporaryDirectory() as out:
        rows = [json.dumps(dict(zip(("premise", "hypothesis", "label"), pair, strict=True))) for pair in PAIRS]
        Path(out, "pairs.jsonl").write_text("\n".join(rows) + "\n")
        lines = [line.format(model=default_model(), out=out) for line in COMMANDS[: plan.count(len(COMMANDS))]]
        for name, words in [
            ("every import", ["-c", WALK]),
            ("both layers", ["-c", LAYERS]),
            *((line.replace(out, "OUT"), ["-m", "spinformer", *shlex.split(line)]) for line in lines),
        ]:
            command = [sys.executable, "-W", "error", *words]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
            found.count("processes")
            last = (done.stderr.strip().splitlines() or [""])[-1]
            found.expect(done.returncode == 0, f"{name}: ended with {done.returncode}: {last}")
            warned = [line for line in done.stderr.splitlines() if "Warning:" in line]
            found.expect(not warned, f"{name}: {warned[:1]}")
    return found
