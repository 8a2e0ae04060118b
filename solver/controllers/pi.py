"""The I controller damped by the error of the step before."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, final

from solver.bounds import Bounds, Help
from solver.controllers._power_law import PowerLaw, PowerLawController


@final
@dataclass(frozen=True, kw_only=True)
class PI(PowerLawController):
    """PI controller: `factor = safety * e_n^(-(ki+kp)/k) * e_(n-1)^(kp/k)`, `k = error_order + 1`.

    Takes sharper steps back while the error grows, which saves refusals and calms the oscillation
    of the I controller where stability limits the step. Gustafsson (1991), ACM TOMS 17(4),
    533-554. With `safety = 0.9` and `ki = 0.3` the steady error is well below the tolerance; see
    `steady_error_ratio`.

    | preset        | kp  | ki   | what it is |
    | ------------- | --- | ---- | ---------- |
    | gustafsson    | 0.4 | 0.3  | 0.7/k and -0.4/k; Gustafsson (1991); the default here |
    | diffrax_pi    | 0.4 | 0.3  | values diffrax names; accepted steps never made smaller |
    | diffrax_easy  | 0.4 | 1    | values it names for easy problems, likewise |
    | diffrax_rough | 0.1 | 0.3  | values it names for problems that are not smooth, likewise |
    | hairer_dopri5 | 0.2 | 0.65 | beta = 0.04 of Hairer's DOPRI5, no growth right after a refusal |

    DOPRI5 differs in that it ignores the last error on a refusal and floors it at 1e-4.

    Raises:
        InvalidArgument: a setting is outside its bounds, `shrink` is above `safety`, or `ki + kp
            <= 0`.
    """

    name: ClassVar[str] = "pi"
    title: ClassVar[str] = "PI"
    steady: ClassVar[Mapping[str, Any]] = {"kind": "gains", "safety": "safety", "icoeff": "ki"}
    presets: ClassVar[Mapping[str, tuple[Mapping[str, Any], str]]] = {
        "gustafsson": ({"kp": 0.4, "ki": 0.3}, "Gustafsson (1991), ACM TOMS 17(4)"),
        "diffrax_pi": (
            {"kp": 0.4, "ki": 0.3, "never_shrink_on_accept": True},
            "diffrax 0.7, PIDController documentation",
        ),
        "diffrax_easy": (
            {"kp": 0.4, "ki": 1.0, "never_shrink_on_accept": True},
            "diffrax 0.7, PIDController documentation",
        ),
        "diffrax_rough": (
            {"kp": 0.1, "ki": 0.3, "never_shrink_on_accept": True},
            "diffrax 0.7, PIDController documentation",
        ),
        "hairer_dopri5": (
            {"kp": 0.2, "ki": 0.65, "no_growth_after_reject": True},
            "Hairer, Norsett & Wanner I (2nd ed.), DOPRI5 with beta = 0.04",
        ),
    }

    kp: Annotated[float, Bounds(-1.0, 2.0, 0.01), Help("gain on the change of the error")] = 0.4
    ki: Annotated[float, Bounds(0.01, 2.0, 0.01), Help("gain on the error of this step")] = 0.3
    safety: Annotated[float, Bounds(0.1, 0.999, 0.01), Help("part of the ideal step taken")] = 0.9
    shrink: Annotated[float, Bounds(0.01, 0.95, 0.01), Help("smallest factor")] = 0.2
    grow: Annotated[float, Bounds(1.1, 100.0, 0.1), Help("largest factor")] = 10.0
    limiter: Annotated[Literal["clamp", "smooth"], Help("cut factors off, or bend them")] = "clamp"
    never_shrink_on_accept: Annotated[bool, Help("factor at least 1 on acceptance")] = False
    no_growth_after_reject: Annotated[bool, Help("factor at most 1 right after a refusal")] = False

    def power_law(self) -> PowerLaw:
        """Return the exponents and limits that the settings stand for."""
        return PowerLaw(
            beta=(self.ki + self.kp, -self.kp, 0.0),
            gain=self.safety,
            safety=self.safety,
            shrink=self.shrink,
            grow=self.grow,
            smooth=self.limiter == "smooth",
            never_shrink_on_accept=self.never_shrink_on_accept,
            no_growth_after_reject=self.no_growth_after_reject,
        )
