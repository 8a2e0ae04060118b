"""The model behind a replay: what a solve and its problem tell of the error of any step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

import solver
from app.replay import Recorded, Stability
from app.studied import Studied
from solver.catalogue import methods
from solver.controllers._power_law import PowerLaw, PowerLawController
from solver.errors import InvalidArgument, SolverError
from solver.hooks import Hook, StepBlock
from solver.methods.explicit_rk import ExplicitRungeKutta

if TYPE_CHECKING:
    from inspector.run import Run

ROWS = 16  # replayed; of more, some of all ranks stand for the rest
POINTS = 500  # in each row, at which the fast part is looked for
WIDEST = 64  # components up to which its eigenvalues are found
NEAR = 0.8  # part of the stable range from which on an error tells of stability
APART = 0.5  # of a recorded step, the step by which the error on the solution itself is found
STEPS = 60_000  # of the solve that gives the states


class Attempts(NamedTuple):
    """Attempts of a solve, `(n, B)` each; times counted forward from the start."""

    t: Tensor
    dt: Tensor
    ratio: Tensor
    running: Tensor  # bool


@dataclass(frozen=True, eq=False)
class Replay:
    """A model ready to be asked.

    Args:
        recorded: of the rows replayed.
        share: recorded attempts of all rows over those that the model counts for the recorded
            controller: brings estimates to the scale of the batch, and to what really was.
        k: order of the error of a step.
        about: what it is made of, for people.
    """

    recorded: Recorded
    share: float
    k: int
    about: Mapping[str, Any]

    def estimate(
        self, laws: Sequence[PowerLaw], scale: float = 1.0
    ) -> tuple[list[float], list[float], list[float], list[bool]]:
        """Return attempts, refused, roughness, and whether all rows ended; one a controller."""
        found = self.recorded.replay(laws, scale)
        return (
            (found.attempts * self.share).tolist(),
            (found.refused * self.share).tolist(),
            found.roughness.tolist(),
            found.ended.tolist(),
        )


class _Blocks(Hook):
    """Keeps what happens."""

    def __init__(self) -> None:
        self.blocks: list[StepBlock] = []

    def on_steps(self, steps: StepBlock) -> None:
        """Keep a block."""
        self.blocks.append(steps)

    def joined(self, name: str) -> Tensor:
        """Return a quantity of all attempts, `(n, B)`."""
        return torch.cat([getattr(block, name) for block in self.blocks])


def attempts_of_solve(
    studied: Studied,
    method: str,
    rtol: float,
    atol: float,
    controller: Mapping[str, Any],
    watchers: Sequence[Hook],
) -> Attempts:
    """Solve now and return the attempts.

    Raises:
        InvalidArgument: no row got to its end.
    """
    kept = _Blocks()
    solution = studied.solve(
        method, rtol, atol=atol, controller=controller, hooks=[*watchers, kept]
    )
    if not bool(solution.success.any()):
        raise InvalidArgument(f"nothing to tune: every row failed: {solution.message(0)}")
    t0, names = studied.built.t0, ("t", "dt", "error_ratio", "running")
    t, dt, ratio, running = (kept.joined(name) for name in names)
    return Attempts((t - t0).abs().double(), dt.abs().double(), ratio.double(), running)


def attempts_of_run(run: "Run", solve: int, studied: Studied) -> Attempts:
    """Return the attempts recorded in a run.

    Raises:
        InvalidArgument: the run holds another batch, or no attempts.
    """
    rows = len(studied.built.y0)
    table = run.steps(solve, columns=["attempt", "instance", "t", "dt", "error_ratio"])
    if table.empty:
        raise InvalidArgument(f"run={run.id!r}: holds no attempts of solve {solve}")
    if int(table["instance"].max()) >= rows:
        raise InvalidArgument(f"run={run.id!r}: solve {solve} has more rows than {rows}")
    shape = (int(table["attempt"].max()) + 1, rows)
    at = tuple(torch.tensor(table[n].to_numpy(dtype="i8")) for n in ("attempt", "instance"))
    values = []
    for name in ("t", "dt", "error_ratio"):
        grid = torch.zeros(shape, dtype=torch.float64)
        grid[at] = torch.tensor(table[name].to_numpy(dtype="f8"))
        values.append(grid)
    running = torch.zeros(shape, dtype=torch.bool)
    running[at] = True
    t, dt, ratio = values
    return Attempts((t - studied.built.t0).abs() * running, dt.abs(), ratio, running)


def model_of(
    studied: Studied,
    attempts: Attempts,
    method: str,
    rtol: float,
    atol: float,
    controller: PowerLawController,
) -> Replay:
    """Build the model from a solve's attempts; with the problem at hand it knows of stability."""
    order = methods()[method]().error_order
    assert order is not None
    counts = attempts.running.sum(dim=0)
    chosen = counts.argsort(descending=True)
    if len(chosen) > ROWS:
        chosen = chosen[torch.linspace(0, len(chosen) - 1, ROWS).round().long()]
    t, dt, ratio, running = (part[:, chosen] for part in attempts)
    k, span = order + 1, torch.full((len(chosen),), studied.span, dtype=torch.float64)
    fast = _fast_part(studied, chosen, t, dt, ratio, running, method, rtol, atol)
    how = "C dt^k" if fast is None else "C dt^k and stability"
    if fast is not None:
        ratio = fast.ratio
    recorded = Recorded.of(
        t, dt, ratio, running, span=span, k=k,
        fast_t=None if fast is None else fast.t, fast=None if fast is None else fast.value,
        stability=None if fast is None else fast.stability,
    )  # fmt: skip
    own = recorded.replay([controller.law])
    share = float(counts.sum()) / max(float(own.attempts[0]), 1.0)
    plain = float(counts[chosen].sum()) / max(float(own.attempts[0]), 1.0)
    return Replay(recorded, share, k, {
        "model": how, "rows": len(chosen), "recorded": int(counts.sum()),
        "limited": 0.0 if fast is None else fast.limited, "own": plain,
    })  # fmt: skip


class _Fast(NamedTuple):
    t: Tensor
    value: Tensor
    ratio: Tensor
    stability: Stability
    limited: float


def _fast_part(
    studied: Studied,
    rows: Tensor,
    t: Tensor,
    dt: Tensor,
    ratio: Tensor,
    running: Tensor,
    method: str,
    rtol: float,
    atol: float,
) -> _Fast | None:
    """Find where stability matters, and what the error would be there without it.

    None where it does not: implicit methods, wide systems, fields that cannot be differentiated,
    or a problem that cannot be solved tightly.
    """
    kind = methods()[method]()
    built = studied.built
    if not isinstance(kind, ExplicitRungeKutta) or built.y0.shape[1] > WIDEST:
        return None
    direction = 1.0 if float(studied.t_eval[-1]) >= built.t0 else -1.0
    if direction < 0 or built.events:
        return None
    y0 = built.y0.double()[rows]
    args = {name: value.double()[rows] for name, value in built.args.items()}
    places = _places(running, POINTS)
    when = t.gather(0, places).T.contiguous() + built.t0  # (B, N)
    when = when.cummax(dim=1).values  # of a row that is done its last time stands on
    jumps = built.jump_t
    jumps = None if jumps is None else jumps.double()[rows] if jumps.dim() == 2 else jumps.double()
    try:
        with torch.no_grad():
            tight = solver.solve_ivp(
                built.f, y0, when, t0=built.t0, args=args, jump_t=jumps, method="dopri8",
                rtol=1e-10, atol=1e-12, max_steps=STEPS, engine="plain",
            )  # fmt: skip
        if not bool(tight.success.all()):
            return None
        value = _eigenvalues(built.f, when, tight.ys, args)
    except (RuntimeError, SolverError):
        return None
    stability = Stability.of(kind.tableau)
    tried = dt.gather(0, places)
    limited = (value.abs().T * tried > NEAR * stability.limit) & running.gather(0, places)
    share = float(limited.double().sum() / running.gather(0, places).double().sum())
    if not bool(limited.any()):
        return None
    found = _on_the_solution(
        built.f, when, tight.ys, tried.T * APART, args, method, rtol, atol, kind
    )
    clean = found.T * (1 / APART) ** ((kind.error_order or 0) + 1)
    filled = ratio.clone()
    held = filled.gather(0, places)
    filled.scatter_(0, places, torch.where(limited & (clean < held), clean, held))
    return _Fast(when - built.t0, value, filled, stability, share)


def _places(running: Tensor, most: int) -> Tensor:
    """Return attempts `(N, B)` spread over each row's own; a row's last is repeated."""
    counts = running.sum(dim=0)
    longest = int(counts.max())
    places = torch.arange(longest)[:, None].expand(longest, len(counts))
    if longest > most:
        steps = torch.linspace(0, 1, most)[:, None] * (counts - 1).clamp(min=0)
        places = steps.round().long()
    return torch.minimum(places, (counts - 1).clamp(min=0))


def _eigenvalues(f: Any, t: Tensor, ys: Tensor, args: Mapping[str, Tensor]) -> Tensor:
    """Return the largest eigenvalue of the Jacobian that damps, `(B, N)`; 0 where none does."""
    from torch.func import jacrev, vmap

    def one(time: Tensor, y: Tensor, own: dict[str, Tensor]) -> Tensor:
        return f(time[None], y[None], {name: value[None] for name, value in own.items()})[0]

    jacobians = vmap(vmap(jacrev(one, argnums=1), in_dims=(0, 0, None)))(t, ys, dict(args))
    values = torch.linalg.eigvals(jacobians)
    damped = torch.where(values.real < 0, values.abs(), -1.0)
    largest = damped.argmax(dim=-1, keepdim=True)
    picked = values.gather(-1, largest)[..., 0]
    return torch.where(damped.gather(-1, largest)[..., 0] > 0, picked, 0.0)


def _on_the_solution(
    f: Any,
    t: Tensor,
    ys: Tensor,
    dt: Tensor,
    args: Mapping[str, Tensor],
    method: str,
    rtol: float,
    atol: float,
    kind: ExplicitRungeKutta,
) -> Tensor:
    """Return the error ratio `(B, N)` of one step from each of the states `ys (B, N, D)`."""
    many = t.shape[1]
    kept = _Blocks()
    step = torch.where(dt > 0, dt, 1e-9).reshape(-1)
    wide = {name: value.repeat_interleave(many, dim=0) for name, value in args.items()}
    start = t.reshape(-1)
    with torch.no_grad():
        solver.solve_ivp(
            f, ys.reshape(-1, ys.shape[-1]), t0=start, t1=start + 2 * step, dt0=step, args=wide,
            method=method, rtol=rtol, atol=atol, max_steps=1, hooks=[kept], engine="plain",
        )  # fmt: skip
    return kept.blocks[0].error_ratio[0].double().reshape(t.shape)
