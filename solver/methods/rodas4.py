"""The Rosenbrock method of Hairer and Wanner of order 4."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import Rosenbrock
from solver.implicit.rosenbrock import RosenbrockTableau


@final
@dataclass(frozen=True)
class Rodas4(Rosenbrock):
    """RODAS, order 4(3), six stages, L-stable, stiffly accurate: for moderate tolerances."""

    name: ClassVar[str] = "rodas4"
    title: ClassVar[str] = "Rodas4"
    numbers: ClassVar[RosenbrockTableau] = RosenbrockTableau(
        source="Hairer & Wanner (1996), Solving ODEs II (2nd ed.), section VI.4, code RODAS",
        order=4,
        error_order=3,
        gamma="1/4",
        c=(0, "0.386", "0.21", "0.63", 1, 1),
        d=("0.25", "-0.1043", "0.1035", "-0.0362", 0, 0),
        a=(
            ("1.544",),
            ("0.9466785280815826", "0.2557011698983284"),
            ("3.314825187068521", "2.896124015972201", "0.9986419139977817"),
            ("1.221224509226641", "6.019134481288629", "12.53708332932087", "-0.6878860361058950"),
            (
                "1.221224509226641",
                "6.019134481288629",
                "12.53708332932087",
                "-0.6878860361058950",
                1,
            ),
        ),
        g=(
            ("-5.6688",),
            ("-2.430093356833875", "-0.2063599157091915"),
            ("-0.1073529058151375", "-9.594562251023355", "-20.47028614809616"),
            ("7.496443313967647", "-10.24680431464352", "-33.99990352819905", "11.70890893206160"),
            (
                "8.083246795921522",
                "-7.981132988064893",
                "-31.52159432874371",
                "16.31930543123136",
                "-6.058818238834054",
            ),
        ),
        m=(
            "1.221224509226641",
            "6.019134481288629",
            "12.53708332932087",
            "-0.6878860361058950",
            1,
            1,
        ),
        m_error=(0, 0, 0, 0, 0, 1),
        dense=(
            (
                "10.12623508344586",
                "-7.487995877610167",
                "-34.80091861555747",
                "-7.992771707568823",
                "1.025137723295662",
            ),
            (
                "-0.6762803392801253",
                "6.087714651680015",
                "16.43084320892478",
                "24.76722511418386",
                "-6.594389125716872",
            ),
        ),
        dense_order=3,
    )
