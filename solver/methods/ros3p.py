"""A Rosenbrock method of order 3 for parabolic problems."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import Rosenbrock
from solver.implicit.rosenbrock import RosenbrockTableau


@final
@dataclass(frozen=True)
class ROS3P(Rosenbrock):
    """ROS3P, order 3(2), A-stable, of full order for parabolic problems.

    The published error estimate is 0 for linear problems. Here a fourth stage, at the end of the
    step, is added to it with a weight of 1/10; it keeps the order of the estimate.
    """

    name: ClassVar[str] = "ros3p"
    title: ClassVar[str] = "ROS3P"
    numbers: ClassVar[RosenbrockTableau] = RosenbrockTableau(
        source="Lang & Verwer (2001), BIT Numer. Math. 41, 731-738",
        order=3,
        error_order=2,
        gamma="0.78867513459481288225457439025098",
        c=(0, 1, 1, 1),
        d=(
            "0.78867513459481288225457439025098",
            "-0.21132486540518711774542560974902",
            "-1.077350269189625764509148780502",
            "0.78867513459481288225457439025098",
        ),
        a=(
            ("1.2679491924311227064725536584941",),
            ("1.2679491924311227064725536584941", 0),
            (2, "0.57735026918962576450914878050196", "0.42264973081037423549085121949804"),
        ),
        g=(
            ("-1.6076951545867362388353219509648",),
            ("-3.4641016151377545870548926830117", "-1.7320508075688772935274463415059"),
            (0, 0, 0),
        ),
        m=(2, "0.57735026918962576450914878050196", "0.42264973081037423549085121949804", 0),
        m_error=(
            "0.0135462651912410931929992683592",
            "-0.22264973081037423549085121949804",
            "0.14641016151377545870548926830117",
            "0.12679491924311227064725536584941",
        ),
        dense=(
            (
                "1.2831216351296779436356402437255",
                "1.0566243270259355887271280487451",
                "0.73205080756887729352744634150587",
                0,
            ),
        ),
        dense_order=2,
    )
