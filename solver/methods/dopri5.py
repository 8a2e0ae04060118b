"""The pair of Dormand and Prince of order 5 and 4."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Literal, final

from solver.bounds import Help, check_bounds
from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau

ORIGINAL = ButcherTableau(
    source="Dormand & Prince (1980), J. Comput. Appl. Math. 6(1), 19-26",
    order=5,
    error_order=4,
    c=(0, "1/5", "3/10", "4/5", "8/9", 1, 1),
    a=(
        (),
        ("1/5",),
        ("3/40", "9/40"),
        ("44/45", "-56/15", "32/9"),
        ("19372/6561", "-25360/2187", "64448/6561", "-212/729"),
        ("9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656"),
        ("35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84"),
    ),
    b=("35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84", 0),
    b_hat=("5179/57600", 0, "7571/16695", "393/640", "-92097/339200", "187/2100", "1/40"),
    # Hairer, Norsett & Wanner I (2nd ed.), eq. II.6.12, in powers of theta.
    interpolant=(
        (1, "-8048581381/2820520608", "8663915743/2820520608", "-12715105075/11282082432"),
        (0, 0, 0, 0),
        (0, "131558114200/32700410799", "-68118460800/10900136933", "87487479700/32700410799"),
        (0, "-1754552775/470086768", "14199869525/1410260304", "-10690763975/1880347072"),
        (0, "127303824393/49829197408", "-318862633887/49829197408", "701980252875/199316789632"),
        (0, "-282668133/205662961", "2019193451/616988883", "-1453857185/822651844"),
        (0, "40617522/29380423", "-110615467/29380423", "69997945/29380423"),
    ),
    interpolant_order=4,
)
SHAMPINE = dataclasses.replace(
    ORIGINAL,
    source="Dormand & Prince (1980), with the error weights of Shampine (1986), Math. Comp. 46",
    b_hat=("1951/21600", 0, "22642/50085", "451/720", "-12231/42400", "649/6300", "1/60"),
)


@final
@dataclass(frozen=True)
class Dopri5(ExplicitRungeKutta):
    """Dormand-Prince 5(4). Seven stages, of which an accepted step pays six (FSAL).

    Two error estimates are in use. Shampine's is exactly two thirds of the original one, so at
    equal tolerance it takes 0.92 times the steps and makes about 1.5 times the error. torchode,
    torchdiffeq and diffrax have Shampine's; scipy and Hairer's dopri5 have the original.

    Raises:
        ValueError: `estimate` is neither `"shampine"` nor `"original"`.
    """

    estimate: Annotated[
        Literal["shampine", "original"],
        Help("Error estimate: Shampine's is two thirds of the original of Dormand and Prince"),
    ] = "shampine"

    name = "dopri5"
    title = "Dormand-Prince 5(4)"
    tableau = SHAMPINE

    def __post_init__(self) -> None:
        """Put the chosen estimate in the place of the class's own."""
        check_bounds(self)
        if self.estimate == "original":
            object.__setattr__(self, "tableau", ORIGINAL)
