"""The additive pair of Kennedy and Carpenter of order 4 and 3."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau

SOURCE = "Kennedy & Carpenter (2003), Appl. Numer. Math. 44, 139-181"
NODES = (0, "1/2", "83/250", "31/50", "17/20", 1)
WEIGHTS = ("82889/524892", 0, "15625/83664", "69875/102672", "-2260/8211", "1/4")
EMBEDDED = (
    "4586570599/29645900160",
    0,
    "178811875/945068544",
    "814220225/1159782912",
    "-3700637/11593932",
    "61727/225920",
)


@final
@dataclass(frozen=True)
class KenCarp4(DiagonallyImplicit):
    """Kennedy-Carpenter ARK4(3)6L[2]SA: six stages, L-stable.

    Of a field given as two parts, `f = (explicit, implicit)`, only the second is solved for.
    """

    name: ClassVar[str] = "kencarp4"
    title: ClassVar[str] = "Kennedy-Carpenter 4(3)"
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source=SOURCE,
        order=4,
        error_order=3,
        c=NODES,
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
        b=WEIGHTS,
        b_hat=EMBEDDED,
    )
    partner: ClassVar[ButcherTableau | None] = ButcherTableau(
        source=SOURCE,
        order=4,
        error_order=3,
        c=NODES,
        a=(
            (),
            ("1/2",),
            ("0.221776", "0.110224"),
            (
                "-0.048846595153118577526568785",
                "-0.17772065232640099844536213",
                "0.84656724747951957597193091",
            ),
            (
                "-0.15541685842491549176240651",
                "-0.35670500982219913139545412",
                "1.0587258798684427106255088",
                "0.30339598837867191253235184",
            ),
            (
                "0.20142435067267632707636971",
                "0.0087420578429041841362972863",
                "0.15993995707168114572322899",
                "0.40382906052207749588151767",
                "0.22606457389066084718258631",
            ),
        ),
        b=WEIGHTS,
        b_hat=EMBEDDED,
    )
