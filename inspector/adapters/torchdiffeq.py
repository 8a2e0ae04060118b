"""Watches torchdiffeq: through the callbacks it calls on `func`, and what stands around the call.

It steps all rows together, so a solve is recorded as one row. Its callbacks tell where a step
begins and how long it is. Whether it was taken is seen from where the next one begins, and the
error ratio follows from the size of the next one, `dt_next = dt * min(grow, safety / ratio^(1/p))`,
unless that was cut by a limit of the factor or of the step: then it is NaN. Two cases are common: a
step that was taken although the ratio would have asked for a smaller one keeps its size (the ratio
is between `safety^p` and 1), and the last step of a solve.
"""

import inspect
import time
import weakref
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, final

import torch
from torch import Tensor

from inspector.adapters.feed import INTERRUPTED, SUCCESS, Feed, Seen, solve_info
from solver.hooks import BackwardInfo, Hook, SolveInfo

_NAMES = ("callback_step", "callback_step_adjoint")
_MOST_FRAMES = 12  # looked at above a callback
_EVALUATIONS = {  # of each step, and before the first one
    "dopri5": (6, 2), "dopri8": (13, 2), "bosh3": (3, 2), "adaptive_heun": (1, 2),
    "fehlberg2": (2, 2), "euler": (1, 0), "midpoint": (2, 0), "heun2": (2, 0), "heun3": (3, 0),
    "rk4": (4, 0),
}  # fmt: skip


def attach(hook: Hook, func: Any) -> Callable[[], None]:
    """Record every solve of `torchdiffeq.odeint(func, ...)` and `odeint_adjoint`, backward too.

    Callbacks that `func` has already are called as before. Copies and pickles of `func` are not
    watched.

    Args:
        hook: who is told, such as an `Inspector`.
        func: the vector field that is handed to torchdiffeq.

    Returns:
        A function that detaches again. A field that is attached to the same hook already stays so.

    Raises:
        TypeError: nothing can be put on the field; a function of one's own around it will do.
    """
    for name in _NAMES:
        held = getattr(func, name, None)
        if isinstance(held, _Callback) and held.spy is not None and held.spy.hook is hook:
            return lambda: None
    spy = _Spy(hook)
    before = {name: vars(func).get(name) for name in _NAMES if hasattr(func, "__dict__")}
    made: dict[str, _Callback] = {}
    try:
        for name in _NAMES:
            made[name] = _Callback(spy, name.endswith("_adjoint"), getattr(func, name, None))
            setattr(func, name, made[name])
    except (AttributeError, TypeError) as error:
        raise TypeError(
            f"attach_torchdiffeq got a {type(func).__name__}, on which no callback can be put: "
            "wrap it in a function or module of your own"
        ) from error

    def detach() -> None:
        spy.finish()
        for name in _NAMES:
            if vars(func).get(name) is made[name]:
                delattr(func, name)
                if before.get(name) is not None:
                    setattr(func, name, before[name])

    return detach


@final
class _Callback:
    """What torchdiffeq calls before a step; a copy of it does nothing."""

    def __init__(self, spy: "_Spy | None", backward: bool, inner: Any) -> None:
        self.spy, self._backward, self._inner = spy, backward, inner

    def __call__(self, t0: Tensor, y0: Any, dt: Tensor) -> None:
        if self._inner is not None:
            self._inner(t0, y0, dt)
        if self.spy is not None:
            self.spy.step(t0, y0, dt, self._backward)

    def __reduce__(self) -> Any:
        return _Callback, (None, self._backward, self._inner)


@final
class _Solve:
    """One solve under way."""

    def __init__(self, feed: Feed, around: Mapping[str, Any], sign: float, backward: bool) -> None:
        solver = around["solver"]
        self.feed, self.sign, self.backward = feed, sign, backward
        self.method = str(around.get("method"))
        self.adaptive = hasattr(solver, "ifactor")
        self.first_step = getattr(solver, "first_step", None) is not None
        limits = ("safety", "ifactor", "dfactor", "min_step", "max_step")
        self.limits = (
            {name: float(getattr(solver, name)) for name in limits} if self.adaptive else {}
        )
        self.order = float(getattr(solver, "order", 1))
        self.t_end = float(around["t"][-1].detach())  # in the solver's own, rising time
        self.waiting: tuple[float, float] | None = None  # start and size of the step under way
        self.reached = float(around["t"][0].detach())

    def error_ratio(self, dt: float, dt_next: float, taken: bool) -> float:
        """Return what made the next step so long, NaN where a limit cut it."""
        limits = self.limits
        factor = dt_next / dt
        lowest = 1.0 if taken else limits["dfactor"]
        cut = factor >= limits["ifactor"] * (1 - 1e-6) or factor <= lowest * (1 + 1e-6)
        cut |= dt_next >= limits["max_step"] or dt_next <= limits["min_step"]
        return float("nan") if cut else (limits["safety"] / factor) ** self.order


@final
class _Spy:
    """What is known of the solves of one field."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self._solve: _Solve | None = None
        self._solver: weakref.ref[Any] | None = None
        self._pending: list[tuple[SolveInfo, int]] = []  # solves that wait for a backward pass
        self._parts: list[tuple[int, int]] = []
        self._began = 0.0
        try:
            self._engine = f"torchdiffeq {metadata.version('torchdiffeq')}"
        except metadata.PackageNotFoundError:
            self._engine = "torchdiffeq"

    @torch.no_grad()
    def step(self, t0: Tensor, y0: Any, dt: Tensor, backward: bool) -> None:
        """Take note that a step begins."""
        around = _around()
        if around is None:
            return
        solver = around["solver"]
        if self._solver is None or self._solver() is not solver:
            self.finish()
            self._begin(around, y0, backward)
            self._solver = weakref.ref(solver, lambda gone: self._gone(gone))
        solve = self._solve
        assert solve is not None
        start, size = float(t0.detach()) * solve.sign, float(dt.detach())
        if solve.waiting is not None:
            self._decided(solve, start, size)
        solve.waiting = (start, size)

    def finish(self) -> None:
        """End the solve under way: torchdiffeq itself does not say when one ends."""
        solve, self._solve, self._solver = self._solve, None, None
        if solve is None:
            return
        if solve.waiting is not None:
            start, size = solve.waiting
            self._add(solve, start, size, float("nan") if solve.adaptive else 0.0, True)
            solve.reached = start + size
        feed = solve.feed
        done = solve.reached >= solve.t_end - 1e-9 * abs(solve.t_end) or solve.t_end != solve.t_end
        status = torch.full_like(feed.n_steps, SUCCESS if done else INTERRUPTED)
        attempts = int(feed.n_steps[0])
        each, before = _EVALUATIONS.get(solve.method, (0, 0))
        calls = attempts * each + max(0, before - int(solve.first_step))
        stats = feed.end(status, torch.full_like(feed.n_steps, calls), calls, feed.info.y0[:, None])
        if solve.backward:
            self._parts.append((int(stats.n_accepted[0]), calls))
            self._backward_done(feed.info)

    def _gone(self, gone: Any) -> None:
        """The solver object is freed, so its solve has ended."""
        if self._solver is gone:
            self.finish()

    def _begin(self, around: Mapping[str, Any], y0: Any, backward: bool) -> None:
        solver, method = around["solver"], str(around.get("method"))
        sign = -1.0 if around.get("t_is_reversed") else 1.0
        flat = solver.y0.detach().reshape(1, -1)
        times = around["t"].detach().double()
        forward = self._pending[-1][0] if backward and self._pending else None
        if backward and not self._parts:
            self._began = time.perf_counter()
        wanted = not backward and around["_adjoint"] and around["_gradient"]
        mode = "joint" if backward or around["_adjoint"] else "backprop"

        def tolerance(name: str) -> Tensor:
            value = torch.as_tensor(around.get(name, 0.0)).detach()
            return value if value.ndim == 0 else value.reshape(-1)

        info = solve_info(
            batch=1,
            dim=flat.shape[1],
            dtype=str(flat.dtype).removeprefix("torch."),
            time_dtype=str(getattr(solver, "dtype", flat.dtype)).removeprefix("torch."),
            device=str(flat.device),
            method=method,
            method_order=int(getattr(solver, "order", 1)),
            controller="integral" if hasattr(solver, "ifactor") else "fixed",
            adjoint=f"{mode} (backward)" if backward else mode,
            engine=self._engine,
            stepping="joint",
            t0=times[:1] * sign,
            t1=times[-1:] * sign,
            rtol=tolerance("rtol"),
            atol=tolerance("atol"),
            y0=flat,
            backward_of=forward,
        )
        self._solve = _Solve(Feed(self.hook, info), around, sign, backward)
        if wanted:
            self._pending = [*self._pending[-99:], (info, len(times) - 1)]

    def _decided(self, solve: _Solve, start: float, size: float) -> None:
        """Take the step before the one that begins now at `start`."""
        assert solve.waiting is not None
        began, tried = solve.waiting
        taken = start > began
        length = start - began if taken else tried  # a step is cut at times that were asked for
        ratio = solve.error_ratio(length, size, taken) if solve.adaptive else 0.0
        self._add(solve, began, length, ratio, taken)
        if taken:
            solve.reached = start

    def _add(self, solve: _Solve, start: float, dt: float, ratio: float, taken: bool) -> None:
        like = solve.feed.info.t0
        solve.feed.add(
            Seen(
                t=torch.full_like(like, start * solve.sign),
                dt=torch.full_like(like, dt * solve.sign),
                error_ratio=torch.full_like(like, ratio),
                accepted=torch.tensor([taken], device=like.device),
                running=torch.tensor([True], device=like.device),
            )
        )

    def _backward_done(self, part: SolveInfo) -> None:
        """Tell of a backward pass when its last part is done."""
        if not self._pending or len(self._parts) < self._pending[-1][1]:
            return
        info, _ = self._pending.pop()
        parts, self._parts = self._parts, []
        calls = sum(each for _, each in parts)
        self.hook.on_backward(
            BackwardInfo(
                solve=info,
                n_steps=sum(steps for steps, _ in parts),
                n_f_calls=calls,
                n_vjps=calls,
                checkpoint_bytes=info.y0.nbytes * (len(parts) + 1),
                graph_bytes=None,
                gradient_bytes=part.y0.nbytes - 2 * info.y0.nbytes,
                predicted_bytes=None,
                allocated_bytes=None,
                seconds=time.perf_counter() - self._began,
            )
        )


def _around() -> dict[str, Any] | None:
    """Return the variables of the `odeint` that is being carried out, None if there is none.

    Says too whether it is the forward half of `odeint_adjoint` (`_adjoint`), and whether a backward
    half may follow (`_gradient`).
    """
    frame = inspect.currentframe()
    for _ in range(_MOST_FRAMES):
        frame = None if frame is None else frame.f_back
        if frame is None:
            return None
        code = frame.f_code
        if code.co_name == "odeint" and "torchdiffeq" in code.co_filename:
            found = dict(frame.f_locals)
            above = frame.f_back
            below_adjoint = above is not None and above.f_code.co_name == "forward"
            context = above.f_locals.get("ctx") if above is not None and below_adjoint else None
            found["_adjoint"] = below_adjoint
            found["_gradient"] = any(getattr(context, "needs_input_grad", ()))
            return found if "solver" in found else None
    return None
