"""The experiments of the attractor paper: train every model and measure what its figures and claims are about.

The paper trains on 50,000 of MNIST's 60,000 training images. So do we, by default on the first 50,000; where a number
of steps is chosen, it is chosen on images among the other 10,000. Everything is measured on the 10,000 test images.

The work is cut into jobs (see `attractor_jobs`), several of which may run at once. Their records, trained models and
checkpoints go to the folder `state`; a run that was stopped continues from there.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from research.experiments import attractor_use
from research.experiments.attractor_jobs import (
    BARE,
    BASELINES,
    PATCHES,
    RELEVANT,
    VARIANTS,
    Job,
    Plan,
    config_of,
    recorded,
    run,
)
from research.experiments.attractor_measures import BINS
from spinformer._base import records
from spinformer._base.files import atomic_write
from spinformer._base.parallel import run_tasks
from spinformer.data.corruption import TASKS
from spinformer.data.images import Images

ATTEMPTS = 2


def jobs(plan: Plan) -> list[Job]:
    """All jobs, those first that take longest or matter most."""
    bare = {name: _bare(name, PATCHES, plan.seeds) for name in BARE}
    for name, (patches, every_seed, *_) in VARIANTS.items():
        bare[name] = _bare(name, patches, plan.seeds if every_seed else 1)
    backprop = [Job("backprop", name, task=task) for name in BASELINES for task in TASKS]
    pairs = [Job("pair", "recurrent", patch, task=task) for patch in PATCHES for task in TASKS]
    stored = [Job("stored", name) for name in ("paper", "field")]
    main = [job for name in ("paper", "paper-sgd", "paper-pair") for job in bare.pop(name)]
    first = [*backprop, *main, Job("trivial", "predictors")]
    return [*first, *pairs, *stored, *(job for group in bare.values() for job in group)]


def _bare(name: str, patches: Sequence[int], seeds: int) -> list[Job]:
    return [Job("bare", name, patch, seed) for patch in patches for seed in range(seeds)]


def select(plan: Plan, only: Sequence[str] = (), without: Sequence[str] = ()) -> list[Job]:
    """The jobs whose keys begin with one of `only` (all, if it is empty) and with none of `without`."""
    every = jobs(plan)
    for prefix in (*only, *without):
        if not any(job.key.startswith(prefix) for job in every):
            raise ValueError(f"no job begins with {prefix}; there are: {', '.join(job.key for job in every)}")
    chosen = [job for job in every if not only or job.key.startswith(tuple(only))]
    return [job for job in chosen if not job.key.startswith(tuple(without))]


def run_jobs(
    chosen: list[Job], images: Images, source: str, plan: Plan, *, state: Path, device: str = "cpu", processes: int = 1
) -> None:
    """Run those of the jobs that have no record in `state`, `processes` at once. images: those that `source` names.

    A job that fails, as where a shared GPU has no memory left, is tried once more after the others.
    """
    start = time.perf_counter()
    failures: list[Exception] = []
    for _ in range(ATTEMPTS):
        failures.clear()
        left = [job for job in chosen if recorded(job, images.digests, plan, state) is None]
        for index, result in run_tasks(run, [(job, source, plan, state, device) for job in left], processes=processes):
            try:
                result()
            except Exception as error:  # the other jobs go on
                failures.append(error)
                print(f"  failed: {left[index].key}: {error}", flush=True)
            else:
                print(f"  {time.perf_counter() - start:6.0f} s  {left[index].key}", flush=True)
    if failures:
        raise failures[0]


def restore(result: dict[str, Any], used: dict[str, Any], plan: Plan, state: Path) -> list[Job]:
    """Write the records of jobs again from attractor.json and attractor-use.json; returns these jobs.

    A result that lacks some jobs, or had another plan for some, is then completed and not made anew. Each record gets
    the commit of the result, with which most of its jobs were run. Records in `state` stay as they are.
    """
    restored = []
    for job in jobs(plan):
        same = all(result["config"][name] == _plain(getattr(plan, name)) for name in ("held_out", *RELEVANT[job.kind]))
        outcome = _outcome_of(job, result["outcome"], used["outcome"]["settings"]) if same else None
        path = state / "results" / f"{job.key}.json"
        if outcome is None or path.is_file():
            continue
        config = {"job": asdict(job), "plan": config_of(job, plan), "images": result["data"]}
        origin = {name: result[name] for name in ("command", "commit", "written", "hardware", "versions")}
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            partial.write_text(
                json.dumps({"name": job.key, **origin, "config": config, "data": {}, "outcome": outcome})
            )
        restored.append(job)
    return restored


def _outcome_of(job: Job, outcome: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any] | None:
    """What `together` and `use` were given for this job; None if nothing."""
    if job.kind == "trivial":
        return {name: outcome[name] for name in ("images", "trivial")}
    if job.kind == "stored":
        return {"rows": outcome["stored"][job.name]} if job.name in outcome["stored"] else None
    if job.kind != "bare":
        name = f"{job.name}-{job.task}" if job.kind == "backprop" else f"{job.name}-{job.patch}-{job.task}"
        record: dict[str, Any] | None = outcome[job.kind].get(name)
        return record
    key = f"{job.name}-{job.patch}"
    for number, row in enumerate(outcome["bare"].get(key, ())):
        if row["seed"] == job.seed:
            measured = {name: value for name, value in row.items() if name != "seed"}
            return measured | ({"use": settings[key][number]} if job.used else {})
    return None


def _plain(value: Any) -> Any:
    """The value as JSON has it."""
    return json.loads(json.dumps(value))


def gather(chosen: list[Job], images: Images, plan: Plan, state: Path) -> dict[Job, dict[str, Any]] | None:
    """The records of these jobs; None, and a list of what is missing, if some were not run."""
    found = {job: recorded(job, images.digests, plan, state) for job in chosen}
    missing = [job.key for job, record in found.items() if record is None]
    if missing:
        print(f"  still to run: {', '.join(missing)}")
        return None
    return {job: record for job, record in found.items() if record is not None}


def together(found: dict[Job, dict[str, Any]]) -> dict[str, Any]:
    """The outcome: the records of all jobs by kind and name."""
    outcome: dict[str, Any] = {"images": {}, "trivial": {}, "bare": {}, "backprop": {}, "pair": {}, "stored": {}}
    variance: dict[str, Any] = {"bins": BINS.tolist()}
    for job, record in found.items():
        if job.kind == "trivial":
            outcome |= record
        elif job.kind == "bare":
            measured = {name: value for name, value in record.items() if name != "use"}
            outcome["bare"].setdefault(f"{job.name}-{job.patch}", []).append({"seed": job.seed, **measured})
            if job.seed == 0 and job.patch == 4:
                variance[f"{job.name}-4"] = record["variance"]
        elif job.kind == "backprop":
            outcome["backprop"][f"{job.name}-{job.task}"] = record
            if job.task == "masked":
                variance[job.name] = record["variance"]
        elif job.kind == "pair":
            outcome["pair"][f"{job.name}-{job.patch}-{job.task}"] = record
        else:
            outcome["stored"][job.name] = record["rows"]
    return outcome | {"variance": variance}


def use(found: dict[Job, dict[str, Any]]) -> dict[str, Any]:
    """The outcome of the stage `use`, from the records of its bare layers and of the trivial predictors."""
    settings: dict[str, list[dict[str, Any]]] = {}
    for job, record in found.items():
        if "use" in record:
            settings.setdefault(f"{job.name}-{job.patch}", []).append(record["use"])
    (trivial,) = (record["trivial"] for job, record in found.items() if job.kind == "trivial")
    return attractor_use.together(settings, trivial)


def provenance(chosen: list[Job], state: Path) -> list[dict[str, Any]]:
    """Machines, versions and commits that the jobs were run with, each with the number of its jobs; most jobs first."""
    origins: list[dict[str, Any]] = []
    for job in chosen:
        record = records.read(job.key, state / "results")
        hardware = {name: value for name, value in record["hardware"].items() if name != "threads"}
        origin = {"commit": record["commit"], "hardware": hardware, "versions": record["versions"]}
        known = next((one for one in origins if one | {"jobs": 0} == origin | {"jobs": 0}), None)
        if known is None:
            known = origin | {"jobs": 0}
            origins.append(known)
        known["jobs"] += 1
    return sorted(origins, key=lambda origin: -origin["jobs"])


def save_examples(chosen: list[Job], state: Path, folder: Path) -> None:
    """Write the trajectories that the jobs left in `state` to `examples.safetensors` in `folder`."""
    paths = [state / "results" / f"{job.key}.safetensors" for job in chosen]
    tensors = {name: tensor for path in paths if path.is_file() for name, tensor in load_file(path).items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "examples.safetensors")
