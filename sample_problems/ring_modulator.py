"""A circuit that mixes two signals, with stray capacitances at its diodes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

C, C_P = 1.6e-8, 1e-8  # farad
R, R_P, R_G1, R_G2, R_G3, R_I, R_C = 25e3, 50.0, 36.3, 17.3, 17.3, 50.0, 600.0  # ohm
L_H, L_S1, L_S2, L_S3 = 4.45, 0.002, 5e-4, 5e-4  # henry
SATURATION, PER_VOLT = 40.67286402e-9, 17.7493332  # of a diode: ampere, 1 / volt
LOW, HIGH = 2e3 * math.pi, 2e4 * math.pi  # of the two signals, radian a second


@final
@dataclass(frozen=True, kw_only=True)
class RingModulator(SampleProblem):
    """Seven voltages and eight currents; the smaller the stray capacitance, the faster they ring.

    Without it the circuit is a system of differential and algebraic equations.
    """

    name: ClassVar[str] = "ring_modulator"
    title: ClassVar[str] = "Ring modulator: a circuit of diodes"
    question: ClassVar[str] = "What does a stray capacitance of a few picofarads cost?"
    latex: ClassVar[str] = (
        r"C_s \dot U_3 = I_3 - q(U_{D1}) + q(U_{D4}), \ldots, \quad "
        r"q(U) = \gamma (e^{\delta U} - 1), \quad L_{s2} \dot I_3 = U_1 / 2 - U_3 - R_{g2} I_3, "
        r"\ldots"
    )
    source: ClassVar[str] = (
        "Horneber (1985); test set for initial value problem solvers (Bari), problem Ring Modulator"
    )
    components: ClassVar[tuple[str, ...]] = (
        *(f"U{i}" for i in range(1, 8)), *(f"I{i}" for i in range(1, 9)),
    )  # fmt: skip
    phase: ClassVar[tuple[int, int] | None] = (0, 6)
    t1: ClassVar[float] = 1e-4
    batch: ClassVar[int] = 8
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "c_s", "low": 2e-11, "high": 2e-9, "scale": "log",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-3
    atol: ClassVar[float] = 1e-6
    method: ClassVar[str] = "rodas5p"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.PID, presets.STABILISED,
    )  # fmt: skip

    c_s: Annotated[
        float, Bounds(1e-12, 1e-6, scale="log"), Help("stray capacitance at the diodes, farad")
    ] = 2e-12

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the rates of voltages and currents."""
        u1, u2, u3, u4, u5, u6, u7, i1, i2, i3, i4, i5, i6, i7, i8 = y.unbind(-1)
        low = 0.5 * torch.sin(LOW * t).to(y.dtype)
        high = 2.0 * torch.sin(HIGH * t).to(y.dtype)
        d1, d2 = _diode(u3 - u5 - u7 - high), _diode(-u4 + u6 - u7 - high)
        d3, d4 = _diode(u4 + u5 + u7 + high), _diode(-u3 - u6 + u7 + high)
        stray = 1 / p["c_s"]
        return torch.stack(
            [
                (i1 - 0.5 * i3 + 0.5 * i4 + i7 - u1 / R) / C,
                (i2 - 0.5 * i5 + 0.5 * i6 + i8 - u2 / R) / C,
                stray * (i3 - d1 + d4),
                stray * (-i4 + d2 - d3),
                stray * (i5 + d1 - d3),
                stray * (-i6 - d2 + d4),
                (-u7 / R_P + d1 + d2 - d3 - d4) / C_P,
                -u1 / L_H,
                -u2 / L_H,
                (0.5 * u1 - u3 - R_G2 * i3) / L_S2,
                (-0.5 * u1 + u4 - R_G3 * i4) / L_S3,
                (0.5 * u2 - u5 - R_G2 * i5) / L_S2,
                (-0.5 * u2 + u6 - R_G3 * i6) / L_S3,
                (-u1 + low - (R_I + R_G1) * i7) / L_S1,
                (-u2 - (R_C + R_G1) * i8) / L_S1,
            ],
            dim=-1,
        )

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start without voltage or current."""
        return torch.zeros(len(p["c_s"]), len(self.components), dtype=p["c_s"].dtype)


def _diode(voltage: Tensor) -> Tensor:
    """Return the current of a diode."""
    return SATURATION * (torch.exp(PER_VOLT * voltage) - 1)
