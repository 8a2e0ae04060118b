"""Trapezoidal rule, then backward differences."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau


@final
@dataclass(frozen=True)
class TRBDF2(DiagonallyImplicit):
    """TR-BDF2, order 2, L-stable, for rough tolerances; the matrix damps its error estimate."""

    name: ClassVar[str] = "trbdf2"
    title: ClassVar[str] = "TR-BDF2"
    filtered: ClassVar[bool] = True
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source="Hosea & Shampine (1996), Appl. Numer. Math. 20, 21-37",
        order=2,
        error_order=2,
        c=(0, "0.585786437626904951198311275790301921", 1),
        a=(
            (),
            ("0.292893218813452475599155637895150961", "0.292893218813452475599155637895150961"),
            (
                "0.353553390593273762200422181052424520",
                "0.353553390593273762200422181052424520",
                "0.292893218813452475599155637895150961",
            ),
        ),
        b=(
            "0.353553390593273762200422181052424520",
            "0.353553390593273762200422181052424520",
            "0.292893218813452475599155637895150961",
        ),
        b_hat=(
            "0.215482203135575412599859272982525160",
            "0.686886723926607095533755514385757853",
            "0.0976310729378174918663852126317169869",
        ),
    )
