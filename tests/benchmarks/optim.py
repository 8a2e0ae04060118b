"""Time of an optimizer step against torch, lion_pytorch and madgrad, in ratios of one run.

python tests/benchmarks/optim.py [--tensors 50 500] [--rounds 25] [--only AdamW] [--cold]

Tensors have 64 to 4096 elements (log-uniform), float32 unless said; gradients stay as they are.
A ratio above 1 says how many times longer the other one takes. Time of the thread, so that waiting
for a busy machine does not count, though its effect on the caches does: besides the median of the
ratios within a round there is the ratio of the fastest rounds. Steps are taken back to back; with
--cold each finds the caches emptied, as after a large forward and backward pass. --check compares
what 200 steps in float64 lead to.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterable
from importlib.util import find_spec

from common import describe_machine, interleave, median_ratio, print_table  # isort: skip

import torch
from torch import Tensor

from solver import optim

Make = Callable[[list[Tensor]], torch.optim.Optimizer]
PEERS = ("madgrad", "lion-pytorch")


def tensors(count: int, dtype: torch.dtype, size: int | None) -> list[Tensor]:
    """Return parameters with gradients, the same for every contestant."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(count):
        n = size or round(64 * 64 ** torch.rand((), generator=generator).item())
        param = torch.randn(n, generator=generator, dtype=dtype).requires_grad_()
        param.grad = torch.randn(n, generator=generator, dtype=dtype)
        found.append(param)
    return found


def contests() -> dict[str, dict[str, tuple[Make, float]]]:
    """Return, for each of ours, what it runs against, and the ratio asked for (0: shown only)."""
    t = torch.optim
    found: dict[str, dict[str, tuple[Make, float]]] = {
        "AdamW": {
            "ours": (lambda p: optim.AdamW(p, 1e-9), 0),
            "ours, foreach=False": (lambda p: optim.AdamW(p, 1e-9, foreach=False), 0),
            "torch fused=True": (lambda p: t.AdamW(p, 1e-9, fused=True), 2.5),
            "torch foreach=True": (lambda p: t.AdamW(p, 1e-9, foreach=True), 0),
            "torch foreach=False": (lambda p: t.AdamW(p, 1e-9, foreach=False), 10),
        },
        "Lion": {"ours": (lambda p: optim.Lion(p, 1e-9, weight_decay=0.1), 0)},
        "MADGRAD": {"ours": (lambda p: optim.MADGRAD(p, 1e-9), 0)},
        "AliG": {
            "ours": (lambda p: optim.AliG(p, 1e-9), 0),
            "torch SGD foreach=True": (lambda p: t.SGD(p, 1e-9, foreach=True), 0),
            "torch SGD foreach=False": (lambda p: t.SGD(p, 1e-9, foreach=False), 0),
        },
    }
    if find_spec("lion_pytorch"):
        from lion_pytorch import Lion  # pyright: ignore[reportMissingImports]
        from lion_pytorch.foreach import Lion as ForeachLion  # pyright: ignore[reportMissingImports]

        found["Lion"] |= {
            "lion_pytorch": (lambda p: Lion(p, 1e-9, weight_decay=0.1), 3.5),
            "lion_pytorch.foreach": (lambda p: ForeachLion(p, 1e-9, weight_decay=0.1), 0),
        }
    if find_spec("madgrad"):
        from madgrad import MADGRAD  # pyright: ignore[reportMissingImports]

        found["MADGRAD"]["madgrad"] = (lambda p: MADGRAD(p, 1e-9), 2.2)
    return found


class ThreadTime:
    """The time this thread computed, in seconds, without what `leave_out` was told."""

    def __init__(self) -> None:
        self.outside = 0.0

    def __call__(self) -> float:
        return time.thread_time() - self.outside

    def leave_out(self, work: Callable[[], object]) -> None:
        start = time.thread_time()
        work()
        self.outside += time.thread_time() - start


def step_of(
    make: Make, params: list[Tensor], repeat: int, before: Callable[[], None]
) -> Callable[[], None]:
    """Return a call that takes `repeat` steps, with `before` before each."""
    optimizer = make(params)
    closure = (lambda: 1.0) if isinstance(optimizer, optim.AliG) else None

    def steps() -> None:
        for _ in range(repeat):
            before()
            optimizer.step(closure)

    return steps


def training_step(make: Make, each: int) -> Callable[[], None]:
    """Return a call that takes `each` training steps through 20 steps of RK4.

    The field is an MLP 2-32-32-2, the batch 64: the cost of AdaHessian's second derivatives.
    """
    torch.manual_seed(0)
    layers = (torch.nn.Linear(2, 32), torch.nn.Linear(32, 32), torch.nn.Linear(32, 2))
    field = torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1], torch.nn.Tanh(), layers[2])
    y0, h = torch.randn(64, 2), 0.05
    optimizer = make(list(field.parameters()))

    def steps() -> None:
        for _ in range(each):
            optimizer.zero_grad()
            y = y0
            for _ in range(20):
                k1 = field(y)
                k2 = field(y + h / 2 * k1)
                k3 = field(y + h / 2 * k2)
                k4 = field(y + h * k3)
                y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            loss = y.square().mean()
            loss.backward(create_graph=getattr(optimizer, "needs_graph", False))
            optimizer.step()

    return steps


def second_order_rows(rounds: int) -> list[list[str]]:
    """Return what a training step with AdaHessian takes, in units of one with AdamW."""
    t = torch.optim
    calls = {
        "torch AdamW foreach=True": training_step(lambda p: t.AdamW(p, foreach=True), 10),
        "ours, AdamW": training_step(optim.AdamW, 10),
        "ours, update_each=1": training_step(lambda p: optim.AdaHessian(p, 1e-3), 10),
        "ours, update_each=5": training_step(
            lambda p: optim.AdaHessian(p, 1e-3, update_each=5), 10
        ),
        "ours, update_each=10": training_step(
            lambda p: optim.AdaHessian(p, 1e-3, update_each=10), 10
        ),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Using backward")  # of create_graph
        seconds = interleave(calls, rounds, clock=time.thread_time)
    first = seconds["torch AdamW foreach=True"]
    return [
        [who, f"{statistics.median(own) * 1e5:.0f}", f"{median_ratio(own, first):.2f}"]
        for who, own in seconds.items()
    ]


def check() -> None:
    """Print the largest difference to the others after 200 steps in float64."""
    options = {"lr": 1e-2, "weight_decay": 0.1}
    pairs: dict[str, tuple[Make, Make]] = {
        "torch AdamW": (
            lambda p: optim.AdamW(p, **options),
            lambda p: torch.optim.AdamW(p, foreach=False, **options),
        )
    }
    if find_spec("lion_pytorch"):
        from lion_pytorch import Lion  # pyright: ignore[reportMissingImports]

        pairs["lion_pytorch"] = lambda p: optim.Lion(p, **options), lambda p: Lion(p, **options)
    if find_spec("madgrad"):
        from madgrad import MADGRAD  # pyright: ignore[reportMissingImports]

        for more in (
            {"momentum": 0.9}, {"momentum": 0.0}, {"momentum": 0.9, "decouple_decay": True},
        ):  # fmt: skip
            named = ", ".join(f"{k}={v}" for k, v in more.items())
            pairs[f"madgrad {named}"] = (
                lambda p, more=more: optim.MADGRAD(p, **options, **more),
                lambda p, more=more: MADGRAD(p, **options, **more),
            )
    rows = []
    for name, makers in pairs.items():
        results = []
        for make in makers:
            params = tensors(20, torch.float64, None)
            optimizer = make(params)
            for step in range(200):
                generator = torch.Generator().manual_seed(step)
                for i, p in enumerate(params):
                    noise = torch.randn(p.shape, dtype=p.dtype, generator=generator)
                    p.grad = None if (step + i) % 7 == 3 else noise + 0.1 * p.detach()
                optimizer.step()
            results.append(params)
        worst = max((a - b).abs().max().item() for a, b in zip(*results, strict=True))
        rows.append([name, f"{worst:.1e}"])
    print_table(["against", "difference"], rows)


def main(
    counts: Iterable[int], size: int | None, rounds: int, only: str | None, dtype: torch.dtype,
    *, cold: bool,
) -> None:  # fmt: skip
    """Print one table: a row for each contest and count; then what AdaHessian costs."""
    rows = []
    clock = ThreadTime()
    junk = torch.zeros(16_000_000 if cold else 0)  # 64 MB, more than the caches
    before = (lambda: clock.leave_out(lambda: junk.add_(1))) if cold else (lambda: None)
    for count in counts:
        elements = sum(p.numel() for p in tensors(count, dtype, size))
        repeat = 4 if cold else max(4, min(2000 // count, 2_000_000 // elements))
        for name, contest in contests().items():
            if only and name != only:
                continue
            calls = {
                who: step_of(make, tensors(count, dtype, size), repeat, before)
                for who, (make, _) in contest.items()
            }
            seconds = interleave(calls, rounds, clock=clock)
            for who, (_, goal) in contest.items():
                ratio = median_ratio(seconds[who], seconds["ours"])
                fast = {w: sorted(seconds[w])[rounds // 10] for w in (who, "ours")}
                middle = statistics.median(seconds[who]) / repeat
                rows.append([
                    f"{name}: {who}", str(count), f"{middle * 1e6:.0f}", f"{ratio:.2f}",
                    f"{fast[who] / fast['ours']:.2f}", f"{goal:g}" if goal else "",
                ])  # fmt: skip
    print_table(["optimizer", "tensors", "us a step", "ratio to ours", "fastest", "goal"], rows)
    if only in (None, "AdaHessian"):
        print_table(["training step through RK4", "us", "ratio"], second_order_rows(rounds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensors", type=int, nargs="+", default=[50, 500])
    parser.add_argument("--size", type=int, default=None, help="elements of every tensor")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only", default=None)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--cold", action="store_true", help="empty the caches before each step")
    parser.add_argument("--check", action="store_true", help="compare results, not times")
    given = parser.parse_args()
    print(describe_machine(["torch", *PEERS]))
    missing = [name for name in PEERS if not find_spec(name.replace("-", "_"))]
    print(f"missing: {', '.join(missing)}" if missing else "no peer is missing")
    if given.check:
        check()
    else:
        main(
            given.tensors, given.size, given.rounds, given.only, getattr(torch, given.dtype),
            cold=given.cold,
        )  # fmt: skip
