"""Symplectic adjoint: exact gradients with the graph of a single evaluation."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, final

from solver.adjoints.aca import WholeStep
from solver.adjoints.parameters import VectorJacobian
from solver.adjoints.replay import Replay
from solver.adjoints.reverser import StepReverser
from solver.adjoints.stages import StageByStage
from solver.adjoints.step_parallel import StepParallel
from solver.bounds import Bounds, Help, check_bounds
from solver.loop import Problem
from solver.methods.explicit_rk import ExplicitRungeKutta


@final
@dataclass(frozen=True, kw_only=True)
class Symplectic(Replay):
    """Accepted states are kept; backward goes through each step stage by stage.

    Exact for every explicit method, and the least memory: one state for each accepted step, and
    the graph of one evaluation of the vector field. Matsubara, Miyatake & Yaguchi (2021), NeurIPS,
    "Symplectic adjoint method for exact gradient of neural ODE with minimal memory", here in the
    form of stage cotangents, see `StageByStage`.

    `keep` trades memory for evaluations; with S stages, N steps:

    | keep     | evaluations a step | memory besides N states                        |
    |----------|--------------------|------------------------------------------------|
    | "one"    | 2 S - 1            | the graph of one evaluation                    |
    | "graphs" | S                  | the graphs of S evaluations                    |
    | "values" | S                  | one graph, and N S slopes                      |
    | "steps"  | S, many at once    | graphs of all steps that `budget` has room for |
    | "auto"   | any of these       | "steps" for small states and fields, else      |
    |          |                    | "graphs", where they fit in `budget`           |

    "steps" takes many steps back in one go, each in all D directions of the state: for small
    states, where the cost is that of calling operations, see `StepParallel`.

    Implicit steps are taken back as a whole, by the implicit function theorem at each stage: exact
    too, with the graphs of one step, whatever `keep` is.

    Raises:
        ValueError: `keep` is none of these, or `budget` is out of bounds.
    """

    keep: Annotated[
        Literal["one", "graphs", "values", "steps", "auto"],
        Help("What is kept besides accepted states: less memory, or fewer evaluations"),
    ] = "one"
    budget: Annotated[
        float,
        Bounds(0.0, 1e7, scale="log"),
        Help('Mebibytes that "auto" and "steps" may keep: accepted states and graphs together'),
    ] = 64.0

    name: ClassVar[str] = "symplectic"
    title: ClassVar[str] = "Symplectic adjoint"

    def __post_init__(self) -> None:
        """Check the settings."""
        check_bounds(self)

    @property
    def keeps_slopes(self) -> bool:
        """Whether the slopes of all stages are kept with the mesh."""
        return self.keep == "values"

    def reverser(
        self, problem: Problem, product: VectorJacobian, kept: int, *, times: bool
    ) -> StepReverser:
        """Go through the stages of the method's tableau, or take an implicit step as a whole."""
        method = problem.method
        if not isinstance(method, ExplicitRungeKutta):
            return WholeStep(problem, product, times=times, mode=self.name)
        room = self.budget * 2**20 - kept
        if self.keep in ("steps", "auto"):
            return StepParallel(
                method.tableau, problem, product, times=times, budget=room,
                only_small=self.keep == "auto",
            )  # fmt: skip
        return StageByStage(
            method.tableau, problem, product, graphs=self.keep == "graphs", times=times
        )
