"""Which executor runs a solve: the plain loop, or a compiled kernel where one pays."""

import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from solver.compiled import build, forms
from solver.compiled import plan as plans
from solver.compiled.engine import MeshBlocks, Run
from solver.compiled.fingerprint import Fingerprint
from solver.compiled.symbolic import Untraceable
from solver.dense import DenseRecord
from solver.loop import Outcome, Problem
from solver.outputs import Outputs
from solver.recording import Recorder
from solver.statistics.base import Statistic

ENGINES = ("auto", "plain", "compiled")
# "auto" looks for a kernel once so much time went into plain solves of one kind, and compiles one,
# beside the solves, once twenty times as much did: about what compiling costs. Both wait longer
# where methods take longer to trace and compile.
LOOK_AFTER = 0.1  # seconds
COMPILE_AFTER = 2.0
MOST_KINDS = 512


@dataclass
class _Kind:
    """What "auto" knows of one kind of problem."""

    spent: float = 0.0  # seconds in plain solves
    plan: plans.Plan | None = None
    hopeless: bool = False
    building: threading.Thread | None = None


@dataclass
class Choice:
    """What was chosen for one solve; `begin` makes the run if it is a compiled one."""

    kind: _Kind | None = None
    plan: plans.Plan | None = None
    kernel: build.Kernel | None = None
    fingerprint: Fingerprint | None = None
    seconds: float = field(default=0.0)  # of compiling, if that was done now

    @property
    def starts(self) -> bool:
        """Whether the starts of all steps are kept."""
        return self.plan is not None and self.plan.starts

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return "plain" if self.kernel is None else "compiled"

    def run(
        self,
        problem: Problem,
        outputs: Outputs | None,
        dense: DenseRecord | None,
        recorder: Recorder | None,
        *,
        regroup: bool,
    ) -> tuple[Outcome, Tensor | None]:
        """Solve by the kernel; return how rows ended and outputs `(B, T, D)`."""
        run = self._run(problem, outputs, dense, recorder, None)
        outcome = run.run(regroup=regroup)
        if outputs is None:
            return outcome, None
        ys = outputs.empty(problem.y0) if run.ys is None else run.ys
        return outcome, outputs.put_ends(ys, problem.y0, outcome.y, outcome.arrived)

    def steps(
        self,
        problem: Problem,
        outputs: Outputs | None,
        recorder: Recorder | None,
        mesh: MeshBlocks,
    ) -> tuple[Outcome, Tensor | None]:
        """Solve by the kernel, all steps going to `mesh`.

        Returns how rows ended, and outputs inside steps, `(B, T, D)` in the order of time.
        """
        run = self._run(problem, outputs, None, recorder, mesh)
        return run.run(regroup=True), run.ys

    def _run(
        self,
        problem: Problem,
        outputs: Outputs | None,
        dense: DenseRecord | None,
        recorder: Recorder | None,
        mesh: MeshBlocks | None,
    ) -> Run:
        assert self.plan is not None
        assert self.kernel is not None
        assert self.fingerprint is not None
        kernel, known = self.kernel, self.fingerprint
        return Run(problem, self.plan, kernel, known, outputs, dense, recorder, mesh)

    def spent(self, seconds: float) -> None:
        """Note what a plain solve took."""
        if self.kind is not None:
            self.kind.spent += seconds


_kinds: OrderedDict[Any, _Kind] = OrderedDict()


def choose(
    problem: Problem,
    engine: str,
    statistics: Sequence[Statistic],
    *,
    outputs: bool,
    dense: bool,
    starts: bool,
    states: bool,
    recorded: bool,
    on_compile: Callable[[], None] | None = None,
) -> Choice:
    """Choose how to solve a problem without a graph.

    Args:
        problem: what to solve.
        engine: "plain", "compiled" or "auto".
        statistics: columns a hook wants.
        outputs, dense, starts, states, recorded: see `find_plan`.
        on_compile: called before the compiler is.

    With "compiled", whatever has no compiled form is solved plainly after one warning that names
    the cause.
    """
    if engine == "plain":
        return Choice()
    flags = {"outputs": outputs, "dense": dense, "starts": starts}
    flags |= {"states": states, "recorded": recorded}
    try:
        if engine == "auto":
            return _automatic(problem, statistics, flags)
        found, fingerprint = plans.find_plan(problem, statistics, **flags)
        began = time.perf_counter()
        if found.loaded is None:  # "auto" need not wait either from now on
            kind = _kind(plans.key_of(problem, statistics, **flags)[0])
            kind.spent = max(kind.spent, LOOK_AFTER * forms.patience(problem.method))
        kernel = found.kernel(on_compile)
        return Choice(None, found, kernel, fingerprint, time.perf_counter() - began)
    except (Untraceable, build.NoCompiler) as error:
        if engine == "compiled":
            complain(str(error))
        return Choice()


def complain(reason: str) -> None:
    """Warn that a solve cannot be compiled."""
    warnings.warn(
        f'engine="compiled" is not possible here, the plain loop runs instead: {reason}',
        RuntimeWarning,
        stacklevel=4,
    )


def _automatic(problem: Problem, statistics: Sequence[Statistic], flags: dict[str, bool]) -> Choice:
    """Take a kernel that is there; have one made when plain solves have cost enough."""
    if plans.reason_against(problem) is not None:
        return Choice()
    key, fingerprint = plans.key_of(problem, statistics, **flags)
    kind = _kind(key)
    patience = forms.patience(problem.method)
    if kind.hopeless or kind.spent < LOOK_AFTER * patience:
        return Choice(kind)
    try:
        found, fingerprint = plans.find_plan(problem, statistics, **flags)
    except Untraceable:
        kind.hopeless = True
        return Choice()
    if build.known(found.source):
        try:
            return Choice(kind, found, found.kernel(), fingerprint)
        except build.NoCompiler:
            kind.hopeless = True
            return Choice()
    if kind.spent >= COMPILE_AFTER * patience and kind.building is None:
        kind.building = threading.Thread(
            target=_build, args=(kind, found), name="stepscope-compile", daemon=True
        )
        kind.building.start()
    return Choice(kind)


def _kind(key: Any) -> _Kind:
    kind = _kinds.get(key)
    if kind is None:
        kind = _kinds[key] = _Kind()
        while len(_kinds) > MOST_KINDS:
            _kinds.popitem(last=False)
    _kinds.move_to_end(key)
    return kind


def _build(kind: _Kind, found: plans.Plan) -> None:
    try:
        found.kernel()
    except build.NoCompiler:
        kind.hopeless = True
