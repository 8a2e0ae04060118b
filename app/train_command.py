"""`stepscope train NAME`: train a sample problem that has a loss, and record it."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Add = Callable[[argparse.ArgumentParser], None]
ENTRIES = (
    *("iterations", "batch", "seed", "dtype", "optimizer", "learning_rate", "schedule"),
    *("pool", "method", "controller", "rtol", "atol", "adjoint", "stepping", "every"),
)


def add(commands: Any, runs_argument: Add) -> None:
    """Add the command to the others."""
    train = commands.add_parser("train", help="train a sample problem that has a loss")
    train.add_argument(
        "problem", nargs="?", help="name of the problem; without one they are listed"
    )
    train.add_argument("--adjoint", help="how gradients get through, such as symplectic")
    train.add_argument("--optimizer", help="adamw, lion, madgrad, adahessian, alig, adam, sgd")
    train.add_argument("--lr", dest="learning_rate", type=float, help="learning rate")
    train.add_argument("--schedule", choices=("constant", "cosine"), help="of the learning rate")
    train.add_argument("--controller", help="step-size controller, or one of its presets")
    train.add_argument("--method", help="solver, such as tsit5")
    train.add_argument("--rtol", type=float)
    train.add_argument("--atol", type=float)
    train.add_argument("--stepping", choices=("independent", "joint"))
    train.add_argument("--iterations", type=int)
    train.add_argument("--batch", type=int, help="samples in each iteration, of all processes")
    train.add_argument("--pool", type=int, help="samples there are")
    train.add_argument("--seed", type=int)
    train.add_argument("--dtype", choices=("float32", "float64"))
    train.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the problem"
    )
    train.add_argument("--every", type=int, help="keep the steps of every k-th iteration")
    train.add_argument("--devices", type=int, default=1, help="processes that share each batch")
    train.add_argument("--name", help="of the run's folder; made up if left out")
    train.add_argument("--note", default="", help="kept with the run")
    train.add_argument("--quiet", action="store_true", help="print the last line only")
    runs_argument(train)
    train.set_defaults(do=run_train)


def run_train(arguments: argparse.Namespace) -> int:
    """Train and print how it went, beside the quality that the problem states."""
    if arguments.problem is None:
        return list_problems()
    from app.workers import new_run_id
    from inspector import run_path

    spec = spec_of(arguments)
    path = run_path(arguments.runs, arguments.name or new_run_id(arguments.problem))
    if path.exists():
        raise ValueError(
            f"--name {arguments.name}: there is such a run in {arguments.runs} already"
        )
    if arguments.devices > 1 and "RANK" not in os.environ:
        return launch(arguments.devices, spec, path, arguments.note)
    return do(spec, path, arguments.note, arguments.quiet)


def spec_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the spec that the arguments ask for.

    Raises:
        ValueError: a setting is not NAME=VALUE.
    """
    from app.trainer import KIND

    spec: dict[str, Any] = {"kind": KIND, "problem": arguments.problem, "parameters": {}}
    for text in arguments.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text}: must be NAME=VALUE")
        try:
            spec["parameters"][name] = json.loads(value)
        except json.JSONDecodeError:
            spec["parameters"][name] = value
    given = {name: getattr(arguments, name) for name in ENTRIES}
    return spec | {name: value for name, value in given.items() if value is not None}


def do(spec: dict[str, Any], path: Path, note: str = "", quiet: bool = False) -> int:
    """Train in this process, or as one rank of several."""
    from app.trainer import read_plan, record_training

    plan = read_plan(spec)
    rank = int(os.environ.get("RANK", "0"))
    last = plan.iterations - 1

    def about(step: int, loss: float) -> None:
        if not quiet and rank == 0 and (step % max(1, plan.iterations // 10) == 0 or step == last):
            print(f"iteration {step}: loss {loss:.4g}", flush=True)

    outcome = record_training(spec, path, note=note, about=about)
    if rank:
        return 0
    measure, goal = outcome.measures[-1], plan.problem.goal
    print(
        f"{path}: {plan.problem.name}, {plan.iterations} iterations in {outcome.seconds:.1f} s, "
        f"loss {outcome.losses[0]:.4g} -> {outcome.losses[-1]:.4g}, "
        f"{plan.problem.measure} {outcome.measures[0]:.4g} -> {measure:.4g}"
        + ("" if goal is None else f" (stated: {goal:g})")
    )
    return 0


def launch(devices: int, spec: dict[str, Any], path: Path, note: str) -> int:
    """Start the processes of a distributed training, which record into one run."""
    told = json.dumps({"spec": spec, "path": str(path.absolute()), "note": note})
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *(f"--nproc-per-node={devices}", "-m", "app.train_command", told),
    ]
    home = str(Path(__file__).resolve().parents[1])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    env.setdefault("OMP_NUM_THREADS", "1")
    return subprocess.run(command, env=env, check=False).returncode


def list_problems() -> int:
    """Print what can be trained."""
    from sample_problems.base import LossProblem
    from sample_problems.catalogue import problems

    for name, cls in problems().items():
        if issubclass(cls, LossProblem):
            print(f"{name:20} {cls.title}")
    return 0


def rank_main(told: str) -> int:
    """Be one process of a distributed training."""
    import torch

    order = json.loads(told)
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    torch.distributed.init_process_group(backend)
    try:
        return do(order["spec"], Path(order["path"]), order["note"])
    finally:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(rank_main(sys.argv[1]))
