"""A problem that many settings of the solver are tried on: built once, with a reference solve."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

import solver
from app.own_problem import problem_by_name
from sample_problems.base import BuiltProblem, SampleProblem
from solver.catalogue import controller_by_name, methods
from solver.errors import InvalidArgument
from solver.hooks import Hook
from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.solution import Solution

DTYPES = {"float32": torch.float32, "float64": torch.float64}
OUTPUTS = 33  # times at which a solve is compared with the reference
MOST_REFERENCE_STEPS = 60_000
Pair = tuple[tuple[str, float], tuple[str, float]]  # the reference, and what it is checked with
EXPLICIT: Pair = (("dopri8", 1e-13), ("vern7", 1e-13))
IMPLICIT: Pair = (("radau5", 1e-10), ("rodas5p", 1e-8))
IMPLICIT_WIDE: Pair = (("radau5", 1e-8), ("rodas5p", 1e-7))  # each step costs D^3
WIDE = 64  # components
Scores = dict[str, list[float]]
COUNTS = ("n_f_evals", "n_steps", "n_rejected", "n_jac_evals")


@dataclass(frozen=True, eq=False)
class Reference:
    """What solves are compared with.

    Args:
        ys: states `(B, T, D)` in float64, NaN where a row did not get.
        end: last states `(B, D)`.
        scale: largest component of each row over all times, `(B,)`, that errors are divided by.
        doubt: how far a second reference is from this one, relative as errors are; 0 if exact.
        how: in words.
    """

    ys: Tensor
    end: Tensor
    scale: Tensor
    doubt: float
    how: str


class Outcome(NamedTuple):
    """What is scored of a solve; travels between processes."""

    success: Tensor  # (B,) bool
    end: Tensor  # last states (B, D)
    ys: Tensor  # (B, T, D)
    counts: dict[str, Tensor]  # (B,) each, by the names of `COUNTS`
    message: str  # of the first row that failed
    seconds: float

    @classmethod
    def of(cls, solution: Solution) -> "Outcome":
        """Read it off a solution."""
        failed = (~solution.success).nonzero().flatten().tolist()
        return cls(
            solution.success,
            solution.y_reached.double(),
            solution.ys.double(),
            {name: getattr(solution.stats, name) for name in COUNTS},
            solution.message(failed[0]) if failed else "",
            solution.stats.wall_seconds,
        )


@dataclass(frozen=True, eq=False)
class Studied:
    """A problem with everything that stays the same from one setting to the next.

    Args:
        problem: with its parameters.
        built: for the batch, in the dtype asked for.
        t_eval: times `(T,)` of comparison; the last is the end.
        atol_ratio: atol over rtol, unless a solve is given both.
        options: of `solve_ivp` for every solve.
    """

    problem: SampleProblem
    built: BuiltProblem
    t_eval: Tensor
    atol_ratio: float
    options: Mapping[str, Any]

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "Studied":
        """Read what a spec says of the problem.

        Raises:
            InvalidArgument, InvalidType: an entry is not allowed; the message names it.
            KeyError: the spec names no problem, or one that is not known.
        """
        problem = problem_by_name(spec["problem"], spec.get("parameters"))
        dtype = spec.get("dtype") or "float64"
        if dtype not in DTYPES:
            raise InvalidArgument(f"dtype={dtype!r}: must be one of {', '.join(DTYPES)}")
        seed = int(spec.get("seed") or 0)
        built = problem.build(spec.get("batch"), seed, spec.get("spread", "default"), DTYPES[dtype])
        t1 = built.t1 if spec.get("t1") is None else float(spec["t1"])
        t_eval = torch.linspace(built.t0, t1, OUTPUTS, dtype=torch.float64)
        ratio = spec.get("atol_ratio")
        ratio = problem.atol / problem.rtol if ratio is None else float(ratio)
        if not (math.isfinite(ratio) and ratio > 0):
            raise InvalidArgument(f"atol_ratio={ratio!r}: must be a positive number")
        options = {
            "max_steps": spec.get("max_steps") or 100_000,
            "engine": spec.get("engine") or "plain",
            "dt_min": spec.get("dt_min"),
            "dt_max": spec.get("dt_max"),
        }
        return cls(problem, built, t_eval, ratio, options)

    @property
    def span(self) -> float:
        """Length of the time solved for."""
        return abs(float(self.t_eval[-1] - self.t_eval[0]))

    def solve(
        self,
        method: str,
        rtol: float,
        *,
        atol: float | None = None,
        controller: Mapping[str, Any] | None = None,
        steps: int | None = None,
        hooks: Sequence[Hook] = (),
        dtype: torch.dtype | None = None,
        y0: Tensor | None = None,
        **options: Any,
    ) -> Solution:
        """Solve once.

        Args:
            method: by name.
            rtol, atol: tolerances; atol follows from rtol if None.
            controller: its name and settings; None for the solver's own.
            steps: equal ones in place of a controller, for methods without error estimate.
            hooks: that look at it.
            dtype: of state and parameters, if not the one studied.
            y0: another start, such as one with a gradient.
            options: of `solve_ivp`, in place of those of every solve.
        """
        built, given = self.built, dict(self.options) | options
        start = built.y0 if y0 is None else y0
        args: dict[str, Tensor] = built.args
        if dtype is not None:
            start, args = start.to(dtype), {name: value.to(dtype) for name, value in args.items()}
        given["controller"] = controller_of(controller)
        if steps is not None:
            given |= {"controller": "fixed", "dt0": self.span / steps}
            given |= {"dt_min": None, "dt_max": None}
        jumps = built.jump_t if built.jump_t is None else built.jump_t.to(torch.float64)
        with torch.set_grad_enabled(start.requires_grad):
            return solver.solve_ivp(
                built.f, start, self.t_eval, args=args, jump_t=jumps, events=built.events,
                method=method, rtol=rtol, atol=rtol * self.atol_ratio if atol is None else atol,
                hooks=hooks, **given,
            )  # fmt: skip

    @cached_property
    def stiff(self) -> bool:
        """Whether the problem is meant for implicit methods."""
        return not isinstance(methods()[self.problem.method](), ExplicitRungeKutta)

    @property
    def reference_is_exact(self) -> bool:
        """Whether a formula gives the solution."""
        return self._exact() is not None

    @cached_property
    def reference(self) -> Reference:
        """The solution by formula where one is known, else by a method of high order.

        Raises:
            InvalidArgument: no reference solve got to the end of any row.
        """
        known = self._exact()
        if known is not None:
            return _reference(known, known[:, -1], 0.0, "exact solution")
        implicit = IMPLICIT if self.built.y0.shape[1] < WIDE else IMPLICIT_WIDE
        for (method, rtol), (other, other_rtol) in (
            (implicit,) if self.stiff else (EXPLICIT, implicit)
        ):
            first = self._tight(method, rtol)
            if first is None:
                continue
            ys, end = first.ys.double(), first.y_reached.double()
            found = _reference(ys, end, math.nan, f"{method} at rtol {rtol:g}")
            second = self._tight(other, other_rtol)
            doubt = math.nan
            if second is not None:
                apart = _largest((second.y_reached.double() - end).abs()) / found.scale
                doubt = float(apart.nan_to_num(nan=0.0).max())
            return _reference(ys, end, doubt, found.how)
        raise InvalidArgument(
            f"problem {self.problem.name!r}: no reference solve got through within "
            f"{MOST_REFERENCE_STEPS:,} attempts; try a shorter time span"
        )

    def _tight(self, method: str, rtol: float) -> Solution | None:
        """Return a solve in float64 if any of its rows got through."""
        own = {"dt_min": None, "dt_max": None, "max_steps": MOST_REFERENCE_STEPS}
        found = self.solve(method, rtol, dtype=torch.float64, **own)
        return found if bool(found.success.any()) else None

    def _exact(self) -> Tensor | None:
        y0 = self.built.y0.double()
        args = {name: value.double() for name, value in self.built.args.items()}
        states = []
        for t in self.t_eval:
            state = self.problem.exact(t.expand(len(y0)), y0, args)
            if state is None:
                return None
            states.append(state)
        return torch.stack(states, dim=1)

    def measure(self, outcome: Outcome) -> Scores:
        """Return errors and counts of every row, NaN for rows that failed.

        `end_error` and `trajectory_error` are the largest of all components (and times), over the
        largest component that the row has anywhere.
        """
        reference = self.reference
        end = _largest((outcome.end - reference.end).abs()) / reference.scale
        apart = _largest((outcome.ys - reference.ys).abs())
        along = apart.nan_to_num(nan=0.0).amax(dim=1) / reference.scale
        scores = {"end_error": end, "trajectory_error": torch.maximum(end, along)}
        scores |= {name: outcome.counts[name].double() for name in COUNTS}
        return {
            name: torch.where(outcome.success, score, math.nan).tolist()
            for name, score in scores.items()
        }

    @cached_property
    def reference_gradient(self) -> Tensor:
        """Gradient as `gradient` gives it, `(B, D)`, at a tight tolerance."""
        method, rtol = ("radau5", 1e-10) if self.stiff else ("dopri8", 1e-11)
        return self.gradient(method, rtol, dtype=torch.float64, max_steps=MOST_REFERENCE_STEPS)

    def gradient(self, method: str, rtol: float, **options: Any) -> Tensor:
        """Return the gradient of each row's mean square at the end by its start, `(B, D)`.

        By backpropagation through the solve; 0 for a row that failed.

        Args:
            method, rtol, options: as `solve` takes.
        """
        y0 = self.built.y0.detach().clone().requires_grad_()
        ends = self.solve(method, rtol, y0=y0, **options).ys[:, -1]
        loss = torch.where(ends.isfinite(), ends, 0.0).square().mean(dim=1)
        return torch.autograd.grad(loss.sum(), y0)[0].double()

    def gradient_error(self, method: str, rtol: float, **options: Any) -> list[float]:
        """Return the error of each row's gradient, over the length of the exact one."""
        exact = self.reference_gradient
        error = (self.gradient(method, rtol, **options) - exact).norm(dim=1)
        return (error / exact.norm(dim=1).clamp(min=1e-300)).tolist()


def controller_of(settings: Mapping[str, Any] | None) -> Any:
    """Return the controller that settings with a `name` describe; None stays None."""
    if not settings:
        return None
    return controller_by_name(
        settings["name"], {key: value for key, value in settings.items() if key != "name"}
    )


def _largest(values: Tensor) -> Tensor:
    """Return the largest component, `(..., D) -> (...)`."""
    return values.amax(dim=-1)


def _reference(ys: Tensor, end: Tensor, doubt: float, how: str) -> Reference:
    scale = ys.abs().nan_to_num(nan=0.0).amax(dim=(1, 2))
    scale = torch.where(scale > 0, scale, 1.0)
    return Reference(ys, end, scale, doubt, how)
