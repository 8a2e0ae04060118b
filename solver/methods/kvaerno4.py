"""The pair of Kvaerno of order 4 and 3."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau


@final
@dataclass(frozen=True)
class Kvaerno4(DiagonallyImplicit):
    """Kvaerno 4(3), five stages, L-stable, as is its embedded method.

    A stage lies behind the step: within reach of the end of a row's
    span, or of a jump, adaptive steps take its time to be that end, fixed steps look beyond it.
    """

    name: ClassVar[str] = "kvaerno4"
    title: ClassVar[str] = "Kvaerno 4(3)"
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source="Kvaerno (2004), BIT Numer. Math. 44(3), 489-502",
        order=4,
        error_order=3,
        c=(
            0,
            "1.14563212496426971081600276995353668",
            "0.597104987652311492923300262097971811",
            1,
            1,
        ),
        a=(
            (),
            ("0.572816062482134855408001384976768341", "0.572816062482134855408001384976768341"),
            (
                "0.167235462027210750751159113364842960",
                "-0.142946536857034113235860236243639490",
                "0.572816062482134855408001384976768341",
            ),
            (
                "0.262603290252695818081300355833758050",
                "-0.311904327420563153023467344886522989",
                "0.476484974685732479534165604075996598",
                "0.572816062482134855408001384976768341",
            ),
            (
                "0.197216548312834995837550286999087957",
                "0.176843783906372186031824162599143551",
                "0.815442181350838447398182545209680132",
                "-0.762318576052180484675558379784679981",
                "0.572816062482134855408001384976768341",
            ),
        ),
        b=(
            "0.197216548312834995837550286999087957",
            "0.176843783906372186031824162599143551",
            "0.815442181350838447398182545209680132",
            "-0.762318576052180484675558379784679981",
            "0.572816062482134855408001384976768341",
        ),
        b_hat=(
            "0.262603290252695818081300355833758050",
            "-0.311904327420563153023467344886522989",
            "0.476484974685732479534165604075996598",
            "0.572816062482134855408001384976768341",
            0,
        ),
    )
