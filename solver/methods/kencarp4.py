"""The implicit half of the additive pair of Kennedy and Carpenter of order 4 and 3."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau


@final
@dataclass(frozen=True)
class KenCarp4(DiagonallyImplicit):
    """Kennedy-Carpenter ARK4(3)6L[2]SA, its implicit method: six stages, L-stable."""

    name: ClassVar[str] = "kencarp4"
    title: ClassVar[str] = "Kennedy-Carpenter 4(3)"
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source="Kennedy & Carpenter (2003), Appl. Numer. Math. 44, 139-181",
        order=4,
        error_order=3,
        c=(0, "1/2", "83/250", "31/50", "17/20", 1),
        a=(
            (),
            ("1/4", "1/4"),
            ("8611/62500", "-1743/31250", "1/4"),
            ("5012029/34652500", "-654441/2922500", "174375/388108", "1/4"),
            (
                "15267082809/155376265600",
                "-71443401/120774400",
                "730878875/902184768",
                "2285395/8070912",
                "1/4",
            ),
            ("82889/524892", 0, "15625/83664", "69875/102672", "-2260/8211", "1/4"),
        ),
        b=("82889/524892", 0, "15625/83664", "69875/102672", "-2260/8211", "1/4"),
        b_hat=(
            "4586570599/29645900160",
            0,
            "178811875/945068544",
            "814220225/1159782912",
            "-3700637/11593932",
            "61727/225920",
        ),
    )
