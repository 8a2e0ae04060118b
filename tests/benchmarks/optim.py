"""Time of an optimizer step against torch, lion_pytorch and madgrad, in ratios of one run.

python tests/benchmarks/optim.py [--tensors 50 500] [--rounds 25] [--only AdamW] [--cold]

Tensors have 64 to 4096 elements (log-uniform), float32 unless said; gradients stay as they are.
A ratio above 1 says how many times longer the other one takes. Time of the thread, so that waiting
for a busy machine does not count, though its effect on the caches does: besides the median of the
ratios within a round there is the ratio of the fastest rounds. Steps are taken back to back; with
--cold each finds the caches emptied, as after a large forward and backward pass.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec

from common import describe_machine, interleave, median_ratio, print_table  # isort: skip

import torch
from torch import Tensor

from solver import optim

Make = Callable[[list[Tensor]], torch.optim.Optimizer]
PEERS = ("madgrad", "lion-pytorch")


def tensors(count: int, dtype: torch.dtype) -> list[Tensor]:
    """Return parameters with gradients, the same for every contestant."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(count):
        size = round(64 * 64 ** torch.rand((), generator=generator).item())
        param = torch.randn(size, generator=generator, dtype=dtype).requires_grad_()
        param.grad = torch.randn(size, generator=generator, dtype=dtype)
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
    make: Make, count: int, repeat: int, dtype: torch.dtype, before: Callable[[], None]
) -> Callable[[], None]:
    """Return a call that takes `repeat` steps, with `before` before each."""
    optimizer = make(tensors(count, dtype))
    closure = (lambda: 1.0) if isinstance(optimizer, optim.AliG) else None

    def steps() -> None:
        for _ in range(repeat):
            before()
            optimizer.step(closure)

    return steps


def main(
    counts: Iterable[int], rounds: int, only: str | None, dtype: torch.dtype, *, cold: bool
) -> None:
    """Print one table: a row for each contest and count."""
    rows = []
    clock = ThreadTime()
    junk = torch.zeros(16_000_000 if cold else 0)  # 64 MB, more than the caches
    before = (lambda: clock.leave_out(lambda: junk.add_(1))) if cold else (lambda: None)
    for count in counts:
        repeat = 4 if cold else max(4, 2000 // count)
        for name, contest in contests().items():
            if only and name != only:
                continue
            calls = {
                who: step_of(make, count, repeat, dtype, before)
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensors", type=int, nargs="+", default=[50, 500])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only", default=None)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--cold", action="store_true")
    given = parser.parse_args()
    print(describe_machine(["torch", *PEERS]))
    missing = [name for name in PEERS if not find_spec(name.replace("-", "_"))]
    print(f"missing: {', '.join(missing)}" if missing else "no peer is missing")
    main(given.tensors, given.rounds, given.only, getattr(torch, given.dtype), cold=given.cold)
