"""The classical controller: the error of this step decides alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, final

from solver.bounds import Bounds, Help
from solver.controllers._power_law import PowerLaw, PowerLawController


@final
@dataclass(frozen=True, kw_only=True)
class Integral(PowerLawController):
    """I controller: `factor = safety * e_n^(-ki/k)`, `k = error_order + 1`.

    With `ki = 1` it aims each next step at the tolerance, given that the error goes as the k-th
    power of the step. Hairer, Norsett & Wanner I (2nd ed.), eq. II.4.13.

    | preset       | what it is |
    | ------------ | ---------- |
    | scipy        | RK23, RK45 and DOP853 of scipy: no growth right after a refusal |
    | diffrax      | diffrax 0.7 as it comes: an accepted step is never made smaller |
    | torchdiffeq  | torchdiffeq's rule, the same limits |

    Raises:
        InvalidArgument: a setting is outside its bounds, or `shrink` is above `safety`.
    """

    name: ClassVar[str] = "integral"
    title: ClassVar[str] = "I"
    steady: ClassVar[Mapping[str, Any]] = {"kind": "gains", "safety": "safety", "icoeff": "ki"}
    presets: ClassVar[Mapping[str, tuple[Mapping[str, Any], str]]] = {
        "scipy": ({"no_growth_after_reject": True}, "scipy 1.17, RungeKutta"),
        "diffrax": ({"never_shrink_on_accept": True}, "diffrax 0.7, PIDController as it comes"),
        "torchdiffeq": ({"never_shrink_on_accept": True}, "torchdiffeq 0.2.5, dopri5"),
    }

    ki: Annotated[float, Bounds(0.01, 2.0, 0.01), Help("gain on the error of this step")] = 1.0
    safety: Annotated[float, Bounds(0.1, 0.999, 0.01), Help("part of the ideal step taken")] = 0.9
    shrink: Annotated[float, Bounds(0.01, 0.95, 0.01), Help("smallest factor")] = 0.2
    grow: Annotated[float, Bounds(1.1, 100.0, 0.1), Help("largest factor")] = 10.0
    limiter: Annotated[Literal["clamp", "smooth"], Help("cut factors off, or bend them")] = "clamp"
    never_shrink_on_accept: Annotated[bool, Help("factor at least 1 on acceptance")] = False
    no_growth_after_reject: Annotated[bool, Help("factor at most 1 right after a refusal")] = False

    def power_law(self) -> PowerLaw:
        """Return the exponents and limits that the settings stand for."""
        return PowerLaw(
            beta=(self.ki, 0.0, 0.0),
            gain=self.safety,
            safety=self.safety,
            shrink=self.shrink,
            grow=self.grow,
            smooth=self.limiter == "smooth",
            never_shrink_on_accept=self.never_shrink_on_accept,
            no_growth_after_reject=self.no_growth_after_reject,
        )
