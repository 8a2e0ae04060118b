"""The model behind a replay: what a solve and its problem tell of the error of any step."""

import math
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
    part = _Part(studied, chosen, t, dt, ratio, running, method, rtol, atol)
    fast, slope, how = _fast_part(part), None, "C dt^k"
    if fast is not None:
        ratio, how = fast.ratio, "C dt^k and stability"
    elif not isinstance(methods()[method](), ExplicitRungeKutta):
        slope = _slopes(part, k)
        how = how if slope is None else "C dt^s, s measured along the solution"
    recorded = Recorded.of(
        t, dt, ratio, running, span=span, k=k, slope=slope,
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


@dataclass(frozen=True, eq=False)
class _Part:
    """The rows replayed, with their attempts `(n, B)` and how they were solved."""

    studied: Studied
    rows: Tensor
    t: Tensor
    dt: Tensor
    ratio: Tensor
    running: Tensor
    method: str
    rtol: float
    atol: float

    def args(self) -> dict[str, Tensor]:
        """Return the parameters of the rows."""
        return {name: value.double()[self.rows] for name, value in self.studied.built.args.items()}

    def states(self, places: Tensor, method: str, rtol: float) -> tuple[Tensor, Tensor] | None:
        """Return times `(B, N)` and states `(B, N, D)` where attempts `places (N, B)` began.

        By a tight solve; None if it does not get through, or time runs backwards, or events
        change the state.
        """
        built, rows = self.studied.built, self.rows
        if float(self.studied.t_eval[-1]) < built.t0 or built.events:
            return None
        when = self.t.gather(0, places).T.contiguous() + built.t0
        when = when.cummax(dim=1).values  # of a row that is done its last time stands on
        jumps = None if built.jump_t is None else built.jump_t.double()
        jumps = jumps[rows] if jumps is not None and jumps.dim() == 2 else jumps
        with torch.no_grad():
            tight = solver.solve_ivp(
                built.f, built.y0.double()[rows], when, t0=built.t0, args=self.args(),
                jump_t=jumps, method=method, rtol=rtol, atol=rtol * 1e-2, max_steps=STEPS,
                engine="plain",
            )  # fmt: skip
        return (when, tight.ys) if bool(tight.success.all()) else None

    def ratios(self, when: Tensor, ys: Tensor, dt: Tensor) -> Tensor:
        """Return the error ratio `(B, N)` of one step `dt (B, N)` from each of the states."""
        many, kept = when.shape[1], _Blocks()
        step = torch.where(dt > 0, dt, 1e-9).reshape(-1)
        wide = {name: value.repeat_interleave(many, dim=0) for name, value in self.args().items()}
        start = when.reshape(-1)
        with torch.no_grad():
            solver.solve_ivp(
                self.studied.built.f, ys.reshape(-1, ys.shape[-1]), t0=start, t1=start + 2 * step,
                dt0=step, args=wide, method=self.method, rtol=self.rtol, atol=self.atol,
                max_steps=1, hooks=[kept], engine="plain",
            )  # fmt: skip
        return kept.blocks[0].error_ratio[0].double().reshape(when.shape)


def _fast_part(part: _Part) -> _Fast | None:
    """Find where stability matters, and what the error would be there without it.

    None where it does not: implicit methods, wide systems, fields that cannot be differentiated,
    or a problem that cannot be solved tightly.
    """
    kind = methods()[part.method]()
    built = part.studied.built
    if not isinstance(kind, ExplicitRungeKutta) or built.y0.shape[1] > WIDEST:
        return None
    places = _places(part.running, POINTS)
    try:
        found = part.states(places, "dopri8", 1e-10)
        if found is None:
            return None
        when, ys = found
        value = _eigenvalues(built.f, when, ys, part.args())
    except (RuntimeError, SolverError):
        return None
    stability = Stability.of(kind.tableau)
    tried, ran = part.dt.gather(0, places), part.running.gather(0, places)
    limited = (value.abs().T * tried > NEAR * stability.limit) & ran
    if not bool(limited.any()):
        return None
    share = float(limited.double().sum() / ran.double().sum())
    clean = part.ratios(when, ys, tried.T * APART).T
    clean = clean * (1 / APART) ** ((kind.error_order or 0) + 1)
    held = part.ratio.gather(0, places)
    better = torch.where(limited & (clean < held), clean, held)
    filled = part.ratio.scatter(0, places, better)
    return _Fast(when - built.t0, value, filled, stability, share)


def _slopes(part: _Part, k: int) -> Tensor | None:
    """Return by which power the error of a step grows at each attempt, `(n, B)`.

    Implicit methods lose order where a problem is stiff; two single steps from the solution, one
    longer and one shorter than the recorded one, tell by how much. None if they cannot be taken.
    """
    places = _places(part.running, POINTS)
    try:
        found = part.states(places, "radau5", 1e-9)
        if found is None:
            return None
        when, ys = found
        tried = part.dt.gather(0, places).T
        short, long = (part.ratios(when, ys, tried * share) for share in (APART, 1 / APART))
    except (RuntimeError, SolverError):
        return None
    slope = (long / short).log() / math.log(APART**-2)
    known = slope.isfinite() & (short > 0)
    slope = torch.where(known, slope, float(k)).clamp(1.0, 2.0 * k)
    return torch.full_like(part.t, float(k)).scatter(0, places, slope.T)


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
