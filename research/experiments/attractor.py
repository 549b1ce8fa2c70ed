"""The experiments of the attractor paper: train every model and measure what its figures and claims are about.

The paper trains on 50,000 of MNIST's 60,000 training images. So do we, by default on the first 50,000; where a number
of steps is chosen, it is chosen on images among the other 10,000. Everything is measured on the 10,000 test images.

The work is cut into jobs (see `attractor_jobs`), several of which may run at once. Their records, trained models and
checkpoints go to the folder `state`; a run that was stopped continues from there.
"""

import time
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from research.experiments.attractor_jobs import BARE, BASELINES, PATCHES, VARIANTS, Job, Plan, recorded, run
from research.experiments.attractor_measures import BINS
from spinformer._base.parallel import run_tasks
from spinformer.data.corruption import TASKS
from spinformer.data.images import Images

ONE_SEED = ("paper-adam",)


def jobs(plan: Plan) -> list[Job]:
    """All jobs, those first that take longest or matter most."""
    bare = {name: [Job("bare", name, patch, seed) for patch in PATCHES for seed in range(_seeds(name, plan))]
            for name in (*BARE, *VARIANTS)}  # fmt: skip
    backprop = [Job("backprop", name, task=task) for name in BASELINES for task in TASKS]
    pairs = [Job("pair", "recurrent", patch, task=task) for patch in PATCHES for task in TASKS]
    stored = [Job("stored", name) for name in ("paper", "field")]
    first = [*backprop, *bare.pop("paper"), *bare.pop("paper-sgd"), Job("trivial", "predictors")]
    return [*first, *pairs, *stored, *(job for group in bare.values() for job in group)]


def _seeds(name: str, plan: Plan) -> int:
    return 1 if name in ONE_SEED else plan.seeds


def compute(
    images: Images,
    source: str,
    folder: Path,
    plan: Plan,
    *,
    state: Path | None = None,
    device: str = "cpu",
    processes: int = 1,
    only: tuple[str, ...] = (),
) -> dict[str, Any] | None:
    """Run every job, `processes` at once, and put their records together. images: those that `source` names.

    only: beginnings of the keys of jobs; if there are any, the others are not run, and None is returned unless their
    records are in `state`. A few trajectories go to `examples.safetensors` in `folder`.
    """
    state = state or folder / "state"
    every = jobs(plan)
    chosen = [job for job in every if not only or job.key.startswith(only)]
    if not chosen:
        raise ValueError(f"no job begins with {', '.join(only)}; there are: {', '.join(job.key for job in every)}")
    chosen = [job for job in chosen if recorded(job, images.digests, plan, state) is None]
    start, failures = time.perf_counter(), []
    for index, result in run_tasks(run, [(job, source, plan, state, device) for job in chosen], processes=processes):
        try:
            result()
        except Exception as error:  # the other jobs go on
            failures.append(error)
            print(f"  failed: {chosen[index].key}: {error}", flush=True)
        else:
            print(f"  {time.perf_counter() - start:6.0f} s  {chosen[index].key}", flush=True)
    if failures:
        raise failures[0]
    found = {job: recorded(job, images.digests, plan, state) for job in every}
    missing = [job.key for job, record in found.items() if record is None]
    if missing:
        print(f"  still to run: {', '.join(missing)}")
        return None
    folder.mkdir(parents=True, exist_ok=True)
    save_file(_examples(every, state), folder / "examples.safetensors")
    return together({job: record for job, record in found.items() if record is not None})


def together(found: dict[Job, dict[str, Any]]) -> dict[str, Any]:
    """The outcome: the records of all jobs by kind and name."""
    outcome: dict[str, Any] = {"images": {}, "trivial": {}, "bare": {}, "backprop": {}, "pair": {}, "stored": {}}
    variance: dict[str, Any] = {"bins": BINS.tolist()}
    for job, record in found.items():
        if job.kind == "trivial":
            outcome |= record
        elif job.kind == "bare":
            measured = {name: value for name, value in record.items() if name != "use"}
            outcome["bare"].setdefault(f"{job.name}-{job.patch}", []).append(measured)
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


def _examples(every: list[Job], state: Path) -> dict[str, Any]:
    """The trajectories that the jobs left in `state`."""
    tensors: dict[str, Any] = {}
    for job in every:
        path = state / "results" / f"{job.key}.safetensors"
        if path.is_file():
            tensors |= load_file(path)
    return tensors
