"""Coefficients of torchdiffeq's adaptive methods, which differ from this package's own."""

from dataclasses import dataclass
from fractions import Fraction

from solver.methods.tsit5 import Tsit5


@dataclass(frozen=True)
class Pair:
    """An explicit pair whose last stage is taken for the slope at the end of the step.

    Args:
        source: where the coefficients come from.
        order: what step sizes are chosen by.
        c, a: nodes and weights of the second and later stages.
        b: weights of the step.
        error: weights of the error estimate.
        middle: weights of the state in the middle of the step, for dense output.
    """

    source: str
    order: int
    c: tuple[float, ...]
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    error: tuple[float, ...]
    middle: tuple[float, ...]

    @property
    def ends_with_step(self) -> bool:
        """Whether the last stage is evaluated at the end of the step itself."""
        return self.b[-1] == 0 and self.b[:-1] == self.a[-1]

    def dense(self) -> list[list[float]]:
        """Return weights of slopes in theta, theta ** 2, ... theta ** 4, `(4, S)`.

        The quartic through both ends, with the slopes there, and the state in the middle.
        """
        last = len(self.b) - 1
        rows: list[list[float]] = [[], [], [], []]
        for j, (b, m) in enumerate(zip(self.b, self.middle, strict=True)):
            first, end = float(j == 0), float(j == last)
            rows[0].append(first)
            rows[1].append(end - 4 * first - 5 * b + 16 * m)
            rows[2].append(5 * first - 3 * end + 14 * b - 32 * m)
            rows[3].append(2 * (end - first) - 8 * b + 16 * m)
        return rows


def _row(text: str) -> tuple[float, ...]:
    return tuple(float(Fraction(part)) for part in text.split())


def _difference(b: str, b_hat: str) -> tuple[float, ...]:
    return tuple(x - y for x, y in zip(_row(b), _row(b_hat), strict=True))


ADAPTIVE_HEUN = Pair(
    source="Heun with Euler",
    order=2,
    c=(1.0,),
    a=((1.0,),),
    b=(0.5, 0.5),
    error=(0.5, -0.5),
    middle=(0.5, 0.0),
)
FEHLBERG2 = Pair(
    source="Fehlberg (1969), NASA TR R-315, RK1(2)",
    order=2,
    c=(0.5, 1.0),
    a=((0.5,), _row("1/256 255/256")),
    b=_row("1/512 255/256 1/512"),
    error=_row("-1/512 0 1/512"),
    middle=(0.0, 0.5, 0.0),
)
BOSH3 = Pair(
    source="Bogacki & Shampine (1989), Appl. Math. Lett. 2(4), 321-325",
    order=3,
    c=(0.5, 0.75, 1.0),
    a=((0.5,), (0.0, 0.75), _row("2/9 1/3 4/9")),
    b=_row("2/9 1/3 4/9 0"),
    error=_difference("2/9 1/3 4/9 0", "7/24 1/4 1/3 1/8"),
    middle=(0.0, 0.5, 0.0, 0.0),
)
_DOPRI5_B = "35/384 0 500/1113 125/192 -2187/6784 11/84 0"
DOPRI5 = Pair(
    source="Dormand & Prince (1980); error and middle: Shampine (1986), Math. Comp. 46, 135-150",
    order=5,
    c=_row("1/5 3/10 4/5 8/9 1 1"),
    a=(
        _row("1/5"),
        _row("3/40 9/40"),
        _row("44/45 -56/15 32/9"),
        _row("19372/6561 -25360/2187 64448/6561 -212/729"),
        _row("9017/3168 -355/33 46732/5247 49/176 -5103/18656"),
        _row("35/384 0 500/1113 125/192 -2187/6784 11/84"),
    ),
    b=_row(_DOPRI5_B),
    error=_difference(_DOPRI5_B, "1951/21600 0 22642/50085 451/720 -12231/42400 649/6300 1/60"),
    middle=tuple(
        weight / 2
        for weight in _row(
            "6025192743/30085553152 0 51252292925/65400821598 -2691868925/45128329728 "
            "187940372067/1594534317056 -1776094331/19743644256 11237099/235043384"
        )
    ),
)
_DOPRI8_B = (
    "14005451/335480064 0 0 0 0 -59238493/1068277825 181606767/758867731 561292985/797845732 "
    "-1041891430/1371343529 760417239/1151165299 118820643/751138087 -528747749/2220607170 1/4"
)
DOPRI8 = Pair(
    source="Prince & Dormand (1981), J. Comput. Appl. Math. 7(1), 67-75, RK8(7)13M",
    order=8,
    c=_row(
        "1/18 1/12 1/8 5/16 3/8 59/400 93/200 5490023248/9719169821 13/20 1201146811/1299019798 "
        "1 1 1"
    ),
    a=(
        _row("1/18"),
        _row("1/48 1/16"),
        _row("1/32 0 3/32"),
        _row("5/16 0 -75/64 75/64"),
        _row("3/80 0 0 3/16 3/20"),
        _row("29443841/614563906 0 0 77736538/692538347 -28693883/1125000000 23124283/1800000000"),
        _row(
            "16016141/946692911 0 0 61564180/158732637 22789713/633445777 545815736/2771057229 "
            "-180193667/1043307555"
        ),
        _row(
            "39632708/573591083 0 0 -433636366/683701615 -421739975/2616292301 "
            "100302831/723423059 790204164/839813087 800635310/3783071287"
        ),
        _row(
            "246121993/1340847787 0 0 -37695042795/15268766246 -309121744/1061227803 "
            "-12992083/490766935 6005943493/2108947869 393006217/1396673457 123872331/1001029789"
        ),
        _row(
            "-1028468189/846180014 0 0 8478235783/508512852 1311729495/1432422823 "
            "-10304129995/1701304382 -48777925059/3047939560 15336726248/1032824649 "
            "-45442868181/3398467696 3065993473/597172653"
        ),
        _row(
            "185892177/718116043 0 0 -3185094517/667107341 -477755414/1098053517 "
            "-703635378/230739211 5731566787/1027545527 5232866602/850066563 "
            "-4093664535/808688257 3962137247/1805957418 65686358/487910083"
        ),
        _row(
            "403863854/491063109 0 0 -5068492393/434740067 -411421997/543043805 "
            "652783627/914296604 11173962825/925320556 -13158990841/6184727034 "
            "3936647629/1978049680 -160528059/685178525 248638103/1413531060 0"
        ),
        _row(_DOPRI8_B),
    ),
    b=_row(_DOPRI8_B + " 0"),
    error=_difference(
        _DOPRI8_B + " 0",
        "13451932/455176623 0 0 0 0 -808719846/976000145 1757004468/5645159321 "
        "656045339/265891186 -3867574721/1518517206 465885868/322736535 53011238/667516719 2/45 "
        "0 0",
    ),
    middle=(
        0.04103130360739393,
        0.0,
        0.0,
        0.0,
        0.0,
        0.05100562801991382,
        0.2388930677412202,
        0.3096870143996103,
        -0.2172325471755352,
        0.07833405679331928,
        -0.0018614369715579948,
        0.007072844202678841,
        0.00690847373200576,
        -0.013838404349047373,
    ),
)


def _own_tsit5() -> Pair:
    """Return this package's tableau; the middle is read off its interpolant."""
    exact = Tsit5.tableau.exact
    assert exact.b_error is not None
    return Pair(
        source=Tsit5.tableau.source,
        order=5,
        c=tuple(float(c) for c in exact.c[1:]),
        a=tuple(tuple(float(weight) for weight in row) for row in exact.a[1:]),
        b=tuple(float(weight) for weight in exact.b),
        error=tuple(float(weight) for weight in exact.b_error),
        middle=tuple(
            float(sum(weight / 2**power for power, weight in enumerate(row, start=1)))
            for row in exact.interpolant
        ),
    )


ADAPTIVE = {
    "dopri8": DOPRI8,
    "dopri5": DOPRI5,
    "tsit5": _own_tsit5(),
    "bosh3": BOSH3,
    "fehlberg2": FEHLBERG2,
    "adaptive_heun": ADAPTIVE_HEUN,
}
