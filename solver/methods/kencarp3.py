"""The additive pair of Kennedy and Carpenter of order 3 and 2."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau

SOURCE = "Kennedy & Carpenter (2003), Appl. Numer. Math. 44, 139-181"
NODES = (0, "0.87173304301691799883203890", "3/5", "1")
WEIGHTS = (
    "0.18764102434672382516129213",
    "-0.59529747357695494804782305",
    "0.97178992772177212347051146",
    "0.43586652150845899941601945",
)
EMBEDDED = (
    "0.21474028622338914048623835",
    "-0.48516226388493909282090505",
    "0.86872500252038755116621237",
    "0.40169697514116240116845435",
)


@final
@dataclass(frozen=True)
class KenCarp3(DiagonallyImplicit):
    """Kennedy-Carpenter ARK3(2)4L[2]SA: four stages, L-stable.

    Of a field given as two parts, `f = (explicit, implicit)`, only the second is solved for.
    """

    name: ClassVar[str] = "kencarp3"
    title: ClassVar[str] = "Kennedy-Carpenter 3(2)"
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source=SOURCE,
        order=3,
        error_order=2,
        c=NODES,
        a=(
            (),
            ("0.43586652150845899941601945", "0.43586652150845899941601945"),
            (
                "0.25764824606642724579999601",
                "-0.093514767574886245216015464",
                "0.43586652150845899941601945",
            ),
            (
                "0.18764102434672382516129213",
                "-0.59529747357695494804782305",
                "0.97178992772177212347051146",
                "0.43586652150845899941601945",
            ),
        ),
        b=WEIGHTS,
        b_hat=EMBEDDED,
    )
    partner: ClassVar[ButcherTableau | None] = ButcherTableau(
        source=SOURCE,
        order=3,
        error_order=2,
        c=NODES,
        a=(
            (),
            ("0.87173304301691799883203890",),
            ("0.52758901197630041156180798", "0.072410988023699588438192032"),
            (
                "0.39909600767607013206272607",
                "-0.43755765461351944372284637",
                "1.0384616469374493116601203",
            ),
        ),
        b=WEIGHTS,
        b_hat=EMBEDDED,
    )
