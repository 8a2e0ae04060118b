"""The pair of Kvaerno of order 5 and 4."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau


@final
@dataclass(frozen=True)
class Kvaerno5(DiagonallyImplicit):
    """Kvaerno 5(4), seven stages, L-stable, as is its embedded method.

    A stage lies behind the step: within reach of the end of a row's
    span, or of a jump, adaptive steps take its time to be that end, fixed steps look beyond it.
    """

    name: ClassVar[str] = "kvaerno5"
    title: ClassVar[str] = "Kvaerno 5(4)"
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source="Kvaerno (2004), BIT Numer. Math. 44(3), 489-502",
        order=5,
        error_order=4,
        c=(0, "0.52", "1.230333209967908", "0.8957659843500759", "0.43639360985864756", 1, 1),
        a=(
            (),
            ("0.26", "0.26"),
            ("0.13", "0.84033320996790809", "0.26"),
            ("0.22371961478320505", "0.47675532319799699", "-0.06470895363112615", "0.26"),
            (
                "0.16648564323248321",
                "0.10450018841591720",
                "0.03631482272098715",
                "-0.13090704451073998",
                "0.26",
            ),
            (
                "0.13855640231268224",
                0,
                "-0.04245337201752043",
                "0.02446657898003141",
                "0.61943039072480676",
                "0.26",
            ),
            (
                "0.13659751177640291",
                0,
                "-0.05496908796538376",
                "-0.04118626728321046",
                "0.62993304899016403",
                "0.06962479448202728",
                "0.26",
            ),
        ),
        b=(
            "0.13659751177640291",
            0,
            "-0.05496908796538376",
            "-0.04118626728321046",
            "0.62993304899016403",
            "0.06962479448202728",
            "0.26",
        ),
        b_hat=(
            "0.13855640231268224",
            0,
            "-0.04245337201752043",
            "0.02446657898003141",
            "0.61943039072480676",
            "0.26",
            0,
        ),
    )
