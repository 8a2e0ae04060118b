"""What a sample problem is: a vector field with bounded parameters, spread over a batch.

And what a problem with a loss is: one whose vector field is a network that learns from data.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from solver.bounds import Bounds, Help, check_bounds, describe_settings
from solver.errors import InvalidArgument, InvalidType
from solver.events import Event
from solver.solution import Solution
from solver.solve import solve_ivp

Parameters = Mapping[str, Tensor]  # parameter name -> its value in each instance, (B,)


@dataclass(frozen=True, eq=False)
class BuiltProblem:
    """A problem ready to be solved.

    `solve_ivp(f, y0, t0=t0, t1=t1, args=args, jump_t=jump_t, events=events)`.
    """

    problem: "SampleProblem"
    y0: Tensor  # (B, D)
    t0: float
    t1: float
    parameters: dict[str, Tensor]  # (B,) each
    jump_t: Tensor | None = (
        None  # (B, J) times at which f is known to jump, NaN where there is none
    )
    events: tuple[Event, ...] = ()  # what the solver watches for

    @property
    def args(self) -> dict[str, Tensor]:
        """What `f` takes as its third argument: the parameters of each instance."""
        return self.parameters

    def f(self, t: Tensor, y: Tensor, args: Parameters) -> Tensor:
        """Evaluate the vector field, `(B,), (B, D) -> (B, D)`."""
        return self.problem.field(t, y, args)


@dataclass(frozen=True, kw_only=True)
class SampleProblem(ABC):
    """An initial value problem; subclasses are frozen dataclasses, one a file.

    Their fields are the parameters, with `Bounds` and `Help`. A parameter that is a float may be
    spread over the batch, so that every instance is another problem.
    """

    name: ClassVar[str]  # lower case, what is looked up
    title: ClassVar[str]  # in plain words
    question: ClassVar[str]  # one line: what this problem lets one see
    latex: ClassVar[str]  # the equations
    source: ClassVar[str]  # where they come from
    components: ClassVar[tuple[str, ...]]  # a name for each of the D components
    phase: ClassVar[tuple[int, int] | None] = (0, 1)  # components worth a phase portrait
    t0: ClassVar[float] = 0.0
    t1: ClassVar[float]
    batch: ClassVar[int] = 32
    spread: ClassVar[Mapping[str, Any] | None]  # keys parameter, low, high, scale
    rtol: ClassVar[float] = 1e-4
    atol: ClassVar[float] = 1e-6
    method: ClassVar[str] = "tsit5"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = ()  # keys name, title, spec (partial)

    __post_init__ = check_bounds

    @abstractmethod
    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return dy/dt, `(B, D)`, each row from its own `t (B,)`, `y (B, D)` and parameters."""

    @abstractmethod
    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Return the state at `t0`, `(B, D)`, of the parameters' dtype."""

    def exact(self, t: Tensor, y0: Tensor, p: Parameters) -> Tensor | None:
        """Return the solution at `t (B,)`, `(B, D)`, or None where no closed form is known."""
        return None

    def jumps(self, p: Parameters) -> Tensor | None:
        """Return the times `(B, J)` at which the field jumps and the solver is told so, or None."""
        return None

    def events(self) -> tuple[Event, ...]:
        """Return what the solver is to watch for; their functions take `(t, y, parameters)`."""
        return ()

    @property
    def dim(self) -> int:
        """D, the number of components."""
        return len(self.components)

    def build(
        self,
        batch: int | None = None,
        seed: int = 0,
        spread: Mapping[str, Any] | Literal["default"] | None = "default",
        dtype: torch.dtype = torch.float64,
    ) -> BuiltProblem:
        """Return the problem for a batch.

        Args:
            batch: number of instances B; None for the problem's own.
            seed: of what is random in the start values; the same numbers in every dtype.
            spread: `{"parameter", "low", "high", "scale": "linear" | "log"}`, that parameter's
                values, evenly over the batch; None for the same values everywhere.
            dtype: of state and parameters.

        Raises:
            InvalidArgument: a value is outside what is allowed, or there is no such parameter.
            InvalidType: `batch` is no whole number, or `dtype` no floating-point type.
        """
        batch = self.batch if batch is None else batch
        if isinstance(batch, bool) or not isinstance(batch, int):
            raise InvalidType(f"batch={batch!r}: must be a whole number")
        if batch < 1:
            raise InvalidArgument(f"batch={batch}: must be at least 1")
        if not dtype.is_floating_point:
            raise InvalidType(f"dtype={dtype}: must be a floating-point type")
        spread = self.spread if spread == "default" else spread
        settings = self.settings()
        values = {
            name: torch.full((batch,), float(settings[name]), dtype=torch.float64)
            for name in self.spread_choices()
        }
        if spread is not None:
            values[spread["parameter"]] = self._spread_values(spread, batch)
        generator = torch.Generator().manual_seed(seed)
        y0 = self.start(values, generator).to(dtype)
        parameters = {name: value.to(dtype) for name, value in values.items()}
        jumps = self.jumps(parameters)
        return BuiltProblem(self, y0, self.t0, self.t1, parameters, jumps, self.events())

    def _spread_values(self, spread: Mapping[str, Any], batch: int) -> Tensor:
        """Return the spread parameter's value in each instance, `(B,)`; the middle for one."""
        name = spread.get("parameter")
        known = {s["name"]: s for s in self.describe()["parameters"]}
        if name not in self.spread_choices():
            raise InvalidArgument(
                f"spread parameter {name!r}: {self.name} has {', '.join(self.spread_choices())}"
            )
        low, high = float(spread["low"]), float(spread["high"])
        least, most = known[name]["low"], known[name]["high"]
        if not (math.isfinite(low) and math.isfinite(high) and least <= low <= high <= most):
            raise InvalidArgument(
                f"spread of {name} from {low:g} to {high:g}: must rise and lie in {least} to {most}"
            )
        scale = spread.get("scale", "linear")
        if scale not in ("linear", "log"):
            raise InvalidArgument(f"spread scale {scale!r}: must be 'linear' or 'log'")
        if scale == "log" and low <= 0:
            raise InvalidArgument(
                f"spread of {name} from {low:g}: must be above 0 with scale 'log'"
            )
        part = (
            torch.linspace(0, 1, batch, dtype=torch.float64)
            if batch > 1
            else torch.full((1,), 0.5, dtype=torch.float64)
        )
        if scale == "log":
            return (math.log(low) + part * (math.log(high) - math.log(low))).exp().clamp(low, high)
        return (low + part * (high - low)).clamp(low, high)

    @classmethod
    def spread_choices(cls) -> list[str]:
        """Return the parameters that may be spread over a batch: those that are floats."""
        return [s["name"] for s in describe_settings(cls) if s["type"] == "float"]

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return all that a page needs to offer this problem, as plain JSON values."""
        return {
            "name": cls.name,
            "title": cls.title,
            "question": cls.question,
            "latex": cls.latex,
            "source": cls.source,
            "parameters": describe_settings(cls),
            "spread": dict(cls.spread) if cls.spread else None,
            "spread_choices": cls.spread_choices(),
            "t0": cls.t0,
            "t1": cls.t1,
            "batch": cls.batch,
            "dim": len(cls.components),
            "components": list(cls.components),
            "phase": list(cls.phase) if cls.phase else None,
            "rtol": cls.rtol,
            "atol": cls.atol,
            "method": cls.method,
            "presets": [dict(preset) for preset in cls.presets],
            "loss": None,
        }

    def settings(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


@dataclass(frozen=True, eq=False)
class Batch:
    """Some of the data a problem learns from, ready to be solved."""

    y0: Tensor  # (B, D)
    t_eval: Tensor  # (T,) or (B, T), the first one is where the solve starts
    target: Tensor | None = None  # what the loss compares with
    args: Any = None  # third argument of the fields, left out where None


@dataclass(frozen=True, kw_only=True)
class LossProblem(SampleProblem):
    """A problem whose vector field is a network that learns from data.

    `sols = problem.solve(model, problem.draw(size, generator), adjoint=...)` and
    `problem.loss(sols[-1].ys, batch).backward()` are one iteration of training. As any other sample
    problem it can be solved and looked at, with the network as it is before training.
    """

    measure: ClassVar[str]  # in words, what `test_measure` gives
    goal: ClassVar[float | None] = None  # of the measure, reached by training as it stands here
    optimizer: ClassVar[str] = "adamw"  # "adam" where a decay of weights would spoil the result
    learning_rate: ClassVar[float] = 1e-3
    schedule: ClassVar[Literal["constant", "cosine"]] = "constant"  # of the learning rate
    iterations: ClassVar[int] = 200
    pool: ClassVar[int] = 2048  # samples drawn once for a training, to be seen again and again
    dtype: ClassVar[str] = "float32"  # to train in
    adjoint: ClassVar[str] = "symplectic"
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "speed", "low": 0.5, "high": 2.0, "scale": "log",
    }  # fmt: skip

    speed: Annotated[
        float, Bounds(0.1, 10.0, scale="log"), Help("factor on the field; 1 in training")
    ] = 1.0

    @abstractmethod
    def network(self) -> nn.Module:
        """Return a new network, initialised from torch's global random numbers."""

    @abstractmethod
    def draw(
        self, size: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """Return `size` samples to train on, drawn at random; the same numbers in every dtype."""

    @abstractmethod
    def test_batch(self, dtype: torch.dtype = torch.float64) -> Batch:
        """Return data kept apart from training, always the same."""

    @abstractmethod
    def loss(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return the scalar to be made small, from states `(B, T, D)` at the times of `batch`."""

    def test_measure(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return how good states `(B, T, D)` of the test data are, a scalar; small is good."""
        return self.loss(ys, batch)

    def model(self, seed: int = 0, dtype: torch.dtype = torch.float64) -> nn.Module:
        """Return a new network; the same numbers for a seed in every dtype."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.network().to(dtype)

    def fields(self, model: nn.Module) -> Sequence[Callable[..., Any]]:
        """Return the vector fields that are solved one after another; most have one."""
        return [model]

    def begin(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the states `(B, D)` that solves start from; a model may make them of its data."""
        return batch.y0

    def seen(self, model: nn.Module, ys: Tensor) -> Tensor:
        """Return what of the states `(B, T, D)` the loss compares; a model may decode it."""
        return ys

    def solve(
        self, model: nn.Module, batch: Batch, *, speed: Tensor | None = None, **options: Any
    ) -> list[Solution]:
        """Solve through all fields, each from where the one before ended.

        Args:
            speed: factor on the fields in each row, `(B,)`; None for the setting of that name.
            options: of `solve_ivp`; method and tolerances are the problem's own if left out.

        Returns:
            One solution for each field; the loss is of the last one, whose `ys` are as `seen`.
        """
        given = {"method": self.method, "rtol": self.rtol, "atol": self.atol, **options}
        fields, args = list(self.fields(model)), batch.args
        if speed is None and self.speed != 1:
            speed = torch.full_like(batch.y0[:, 0], self.speed)
        if speed is not None:
            fields, args = [_Scaled(field, args is not None) for field in fields], (speed, args)
        if args is not None:
            given["args"] = args
        solutions: list[Solution] = []
        y = self.begin(model, batch)
        for field in fields:
            solutions.append(solve_ivp(field, y, batch.t_eval, **given))
            y = solutions[-1].ys[:, -1]
        ys = self.seen(model, solutions[-1].ys)
        return [*solutions[:-1], dataclasses.replace(solutions[-1], ys=ys)]

    def evaluate(self, model: nn.Module, **options: Any) -> float:
        """Return the measure on the test data."""
        batch = self.test_batch(next(model.parameters()).dtype)
        with torch.no_grad():
            return float(self.test_measure(self.solve(model, batch, **options)[-1].ys, batch))

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the untrained network's output, of the first field, times `speed`."""
        return p["speed"][:, None] * self.fields(_untrained(self, y.dtype))[0](t, y)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start from data to train on."""
        return self.draw(len(p["speed"]), generator).y0

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return all that a page needs to offer this problem, as plain JSON values."""
        about = {
            "measure": cls.measure,
            "optimizer": cls.optimizer,
            "learning_rate": cls.learning_rate,
            "schedule": cls.schedule,
            "iterations": cls.iterations,
            "adjoint": cls.adjoint,
            "goal": cls.goal,
            "pool": cls.pool,
            "dtype": cls.dtype,
        }
        return super().describe() | {"loss": about}


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A field times a factor in each row, the first of its arguments."""

    inner: Callable[..., Any]
    with_args: bool

    def __call__(self, t: Tensor, y: Tensor, args: tuple[Tensor, Any]) -> Tensor:
        """Return the field, `(B, D)`."""
        speed, rest = args
        slope = self.inner(t, y, rest) if self.with_args else self.inner(t, y)
        return speed[:, None] * slope


@lru_cache(maxsize=8)
def _untrained(problem: LossProblem, dtype: torch.dtype) -> nn.Module:
    return problem.model(0, dtype)
