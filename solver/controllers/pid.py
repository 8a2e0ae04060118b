"""PID control of the step size, with torchode's and diffrax's meaning of the gains."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, final

from solver.bounds import Bounds, Help
from solver.controllers._power_law import PowerLaw, PowerLawController


@final
@dataclass(frozen=True, kw_only=True)
class PID(PowerLawController):
    """PID controller; `kp = kd = 0` is the classical I controller.

    With `k = error_order + 1`,

        factor = safety * e_n^(-(ki+kp+kd)/k) * e_(n-1)^((kp+2kd)/k) * e_(n-2)^(-kd/k)

    Soederlind (2003), ACM TOMS 29(1), 1-26, with error ratios where the paper has their inverse.
    Past errors are 1 at the start and move on acceptance only. The same gains give the same steps
    as torchode's `PIDController(pcoeff, icoeff, dcoeff)`, and, with `never_shrink_on_accept`, as
    diffrax's.

    | preset     | kp    | ki   | kd   | safety   | source |
    | ---------- | ----- | ---- | ---- | -------- | ------ |
    | torchode   | 0.2   | 0.5  | 0    | 0.9      | torchode's `solve_ivp`; the default here |
    | pi42       | 0.2   | 0.4  | 0    | 0.9^0.4  | Soederlind & Wang (2006), PI.4.2 |
    | pi33       | 1/3   | 1/3  | 0    | 0.9^1/3  | Soederlind & Wang (2006), PI.3.3 |
    | pi34       | 0.4   | 0.3  | 0    | 0.9^0.3  | Gustafsson (1991); Soederlind (2003), PI.3.4 |
    | h211pi     | -1/6  | 1/3  | 0    | 0.9^1/3  | Soederlind (2003), table III |
    | h312pid    | -2/9  | 2/9  | 1/18 | 0.9^2/9  | Soederlind (2003), table III |

    Soederlind scales the tolerance, not the factor; the safety factors above do the same, so that
    all of these meet the same steady error, 0.9^k.

    Raises:
        InvalidArgument: a setting is outside its bounds, `shrink` is above `safety`, or the gains
            add up
            to 0 or less.
    """

    name: ClassVar[str] = "pid"
    title: ClassVar[str] = "PID"
    steady: ClassVar[Mapping[str, Any]] = {"kind": "gains", "safety": "safety", "icoeff": "ki"}
    presets: ClassVar[Mapping[str, tuple[Mapping[str, Any], str]]] = {
        "torchode": ({"kp": 0.2, "ki": 0.5}, "torchode 1.0.1, default of solve_ivp"),
        "pi42": (
            {"kp": 0.2, "ki": 0.4, "safety": 0.9**0.4},
            "Soederlind & Wang (2006), J. Comput. Appl. Math. 185(2)",
        ),
        "pi33": (
            {"kp": 1 / 3, "ki": 1 / 3, "safety": 0.9 ** (1 / 3)},
            "Soederlind & Wang (2006), J. Comput. Appl. Math. 185(2)",
        ),
        "pi34": (
            {"kp": 0.4, "ki": 0.3, "safety": 0.9**0.3},
            "Gustafsson (1991), ACM TOMS 17(4)",
        ),
        "h211pi": (
            {"kp": -1 / 6, "ki": 1 / 3, "safety": 0.9 ** (1 / 3)},
            "Soederlind (2003), ACM TOMS 29(1), table III",
        ),
        "h312pid": (
            {"kp": -2 / 9, "ki": 2 / 9, "kd": 1 / 18, "safety": 0.9 ** (2 / 9)},
            "Soederlind (2003), ACM TOMS 29(1), table III",
        ),
    }

    kp: Annotated[float, Bounds(-1.0, 2.0, 0.01), Help("gain on the change of the error")] = 0.2
    ki: Annotated[float, Bounds(0.01, 2.0, 0.01), Help("gain on the error of this step")] = 0.5
    kd: Annotated[float, Bounds(-1.0, 1.0, 0.01), Help("gain on the bend of the error")] = 0.0
    safety: Annotated[float, Bounds(0.1, 0.999, 0.01), Help("part of the ideal step taken")] = 0.9
    shrink: Annotated[float, Bounds(0.01, 0.95, 0.01), Help("smallest factor")] = 0.2
    grow: Annotated[float, Bounds(1.1, 100.0, 0.1), Help("largest factor")] = 10.0
    limiter: Annotated[Literal["clamp", "smooth"], Help("cut factors off, or bend them")] = "clamp"
    never_shrink_on_accept: Annotated[bool, Help("factor at least 1 on acceptance")] = False
    no_growth_after_reject: Annotated[bool, Help("factor at most 1 right after a refusal")] = False

    def power_law(self) -> PowerLaw:
        """Return the exponents and limits that the settings stand for."""
        return PowerLaw(
            beta=(self.ki + self.kp + self.kd, -self.kp - 2 * self.kd, self.kd),
            gain=self.safety,
            safety=self.safety,
            shrink=self.shrink,
            grow=self.grow,
            smooth=self.limiter == "smooth",
            never_shrink_on_accept=self.never_shrink_on_accept,
            no_growth_after_reject=self.no_growth_after_reject,
        )
