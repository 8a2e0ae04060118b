"""A Rosenbrock method of order 2 with two stages."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import Rosenbrock
from solver.implicit.rosenbrock import RosenbrockTableau


@final
@dataclass(frozen=True)
class ROS2(Rosenbrock):
    """ROS2, order 2(1), two stages, L-stable: for rough tolerances and expensive fields."""

    name: ClassVar[str] = "ros2"
    title: ClassVar[str] = "ROS2"
    numbers: ClassVar[RosenbrockTableau] = RosenbrockTableau(
        source="Verwer, Spee, Blom & Hundsdorfer (1999), SIAM J. Sci. Comput. 20(4), 1456-1480",
        order=2,
        error_order=1,
        gamma="0.29289321881345247559915563789515",
        c=(0, 1),
        d=("0.29289321881345247559915563789515", "-0.29289321881345247559915563789515"),
        a=(("3.4142135623730950488016887242097",),),
        g=(("-6.8284271247461900976033774484194",),),
        m=("5.1213203435596425732025330863145", "1.7071067811865475244008443621048"),
        m_error=("1.7071067811865475244008443621048", "1.7071067811865475244008443621048"),
        dense=(("-4.1213203435596425732025330863145", "-4.1213203435596425732025330863145"),),
        dense_order=2,
    )
