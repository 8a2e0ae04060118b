"""Soederlind's digital filters: step sequences smoothed by design."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, final

from solver.bounds import Bounds, Help
from solver.controllers._power_law import PowerLaw, PowerLawController

FilterName = Literal[
    "h110", "h211", "h211b", "h0211", "h312", "h312b", "h0312", "h321", "h0321",
    "pi.3.3", "pi.3.4", "pi.4.2",
]  # fmt: skip

_TABLE_III = "Soederlind (2003), ACM TOMS 29(1), 1-26, table III"
_WANG = "Soederlind & Wang (2006), J. Comput. Appl. Math. 185(2), 225-243"


class Coefficients(NamedTuple):
    """One filter: exponents times k of the errors, exponents of past factors, design orders."""

    beta: tuple[float, float, float]
    alpha: tuple[float, float]
    orders: tuple[int, int, int]  # of dynamics, adaptivity, low-pass filter
    source: str


FIXED_FILTERS: Mapping[str, Coefficients] = {
    "h110": Coefficients((1, 0, 0), (0, 0), (1, 1, 0), _TABLE_III),
    "h211": Coefficients((1 / 6, 1 / 6, 0), (0, 0), (2, 1, 1), _TABLE_III),
    "h0211": Coefficients((1 / 2, 1 / 2, 0), (1 / 2, 0), (2, 1, 1), _TABLE_III),
    "h312": Coefficients((1 / 18, 1 / 9, 1 / 18), (0, 0), (3, 1, 2), _TABLE_III),
    "h0312": Coefficients((1 / 4, 1 / 2, 1 / 4), (3 / 4, 1 / 4), (3, 1, 2), _TABLE_III),
    "h321": Coefficients((1 / 3, 1 / 18, -5 / 18), (-5 / 6, -1 / 6), (3, 2, 1), _TABLE_III),
    "h0321": Coefficients((5 / 4, 1 / 2, -3 / 4), (-1 / 4, -3 / 4), (3, 2, 1), _TABLE_III),
    "pi.3.3": Coefficients((2 / 3, -1 / 3, 0), (0, 0), (2, 1, 0), _WANG),
    "pi.3.4": Coefficients((0.7, -0.4, 0), (0, 0), (2, 1, 0), "Gustafsson (1991), ACM TOMS 17(4)"),
    "pi.4.2": Coefficients((0.6, -0.2, 0), (0, 0), (2, 1, 0), _WANG),
}


def coefficients(name: str, b: float) -> Coefficients:
    """Return the coefficients of a filter; `b` matters for `h211b` and `h312b` only."""
    if name == "h211b":
        return Coefficients((1 / b, 1 / b, 0), (1 / b, 0), (2, 1, 1), _TABLE_III)
    if name == "h312b":
        return Coefficients((1 / b, 2 / b, 1 / b), (3 / b, 1 / b), (3, 1, 2), _TABLE_III)
    return FIXED_FILTERS[name]


@final
@dataclass(frozen=True, kw_only=True)
class DigitalFilter(PowerLawController):
    """Digital filter by name: past errors and past factors make the step sequence smooth.

    With `k = error_order + 1`, error ratios `e`, past factors `rho` and the set point
    `theta = safety^k`,

        factor = (theta/e_n)^(b1/k) (theta/e_(n-1))^(b2/k) (theta/e_(n-2))^(b3/k)
                 * rho_(n-1)^(-a2) rho_(n-2)^(-a3)

    so every filter settles at the same error ratio, theta, and step counts may be compared. Past
    errors and factors count as 1 at the start. A refused step is repeated by the elementary rule,
    `safety * e_n^(-1/k)`: a smooth filter alone would need many tries.

    | preset | b1    | b2    | b3    | a2   | a3   | orders | good for |
    | ------ | ----- | ----- | ----- | ---- | ---- | ------ | -------- |
    | h110   | 1     |       |       |      |      | 1 1 0  | the elementary one |
    | pi.3.3 | 2/3   | -1/3  |       |      |      | 2 1 0  | stability-limited steps |
    | pi.3.4 | 7/10  | -2/5  |       |      |      | 2 1 0  | nonstiff |
    | pi.4.2 | 3/5   | -1/5  |       |      |      | 2 1 0  | nonstiff, general |
    | h211   | 1/6   | 1/6   |       |      |      | 2 1 1  | stiff; also named H211PI |
    | h211b  | 1/b   | 1/b   |       | 1/b  |      | 2 1 1  | general, b in 2..8, default 4 |
    | h0211  | 1/2   | 1/2   |       | 1/2  |      | 2 1 1  | deadbeat |
    | h312   | 1/18  | 1/9   | 1/18  |      |      | 3 1 2  | nonsmooth; also H312PID |
    | h312b  | 1/b   | 2/b   | 1/b   | 3/b  | 1/b  | 3 1 2  | nonsmooth, default b = 8 |
    | h0312  | 1/4   | 1/2   | 1/4   | 3/4  | 1/4  | 3 1 2  | deadbeat |
    | h321   | 1/3   | 1/18  | -5/18 | -5/6 | -1/6 | 3 2 1  | smooth, medium |
    | h0321  | 5/4   | 1/2   | -3/4  | -1/4 | -3/4 | 3 2 1  | smooth, deadbeat |

    Orders are those of dynamics, adaptivity and low-pass filter. Soederlind (2003), ACM TOMS
    29(1), 1-26, table III; PI.3.3 and PI.4.2: Soederlind & Wang (2006), J. Comput. Appl. Math.
    185(2), 225-243; PI.3.4: Gustafsson (1991), ACM TOMS 17(4), 533-554.

    The smooth limiter is `1 + kappa arctan((x - 1)/kappa)` with `grow = 1 + kappa pi/2`: `grow =
    2.57` stands for kappa = 1.

    Raises:
        InvalidArgument: a setting is outside its bounds, there is no such filter, or `shrink` is
            above
            `safety`.
    """

    name: ClassVar[str] = "digital_filter"
    title: ClassVar[str] = "Digital filter"
    steady: ClassVar[Mapping[str, Any]] = {"kind": "gains", "safety": "safety", "icoeff": 1.0}
    presets: ClassVar[Mapping[str, tuple[Mapping[str, Any], str]]] = {
        **{name: ({"filter": name}, row.source) for name, row in FIXED_FILTERS.items()},
        "h211b": ({"filter": "h211b", "b": 4.0}, _TABLE_III),
        "h312b": ({"filter": "h312b", "b": 8.0}, _TABLE_III),
    }

    filter: Annotated[
        FilterName, Help("which filter; orders of dynamics, adaptivity, low-pass")
    ] = "h211b"
    b: Annotated[float, Bounds(2.0, 20.0, 0.5), Help("smoothness of h211b and h312b")] = 4.0
    safety: Annotated[float, Bounds(0.1, 0.999, 0.01), Help("part of the ideal step taken")] = 0.9
    shrink: Annotated[float, Bounds(0.01, 0.95, 0.01), Help("smallest factor")] = 0.2
    grow: Annotated[float, Bounds(1.1, 100.0, 0.1), Help("largest factor")] = 2.57
    limiter: Annotated[Literal["clamp", "smooth"], Help("cut factors off, or bend them")] = "smooth"

    @property
    def orders(self) -> tuple[int, int, int]:
        """Orders of dynamics, adaptivity and low-pass filter."""
        return coefficients(self.filter, self.b).orders

    def power_law(self) -> PowerLaw:
        """Return the exponents and limits that the settings stand for."""
        beta, alpha, _, _ = coefficients(self.filter, self.b)
        return PowerLaw(
            beta=beta,
            alpha=alpha,
            gain=self.safety ** sum(beta),
            safety=self.safety,
            shrink=self.shrink,
            grow=self.grow,
            smooth=self.limiter == "smooth",
            elementary_refusal=True,
        )
