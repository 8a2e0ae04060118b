"""scipy's solvers behind torchdiffeq's call; without gradients."""

import importlib
import math
from typing import Any

import torch
from torch import Tensor

from solver.compat._system import System, use

# `norm`, `grid_points` and `eps` mean nothing here and are passed over.
OPTIONS: dict[str, Any] = {
    "min_step": 0.0, "max_step": math.inf, "solver": "LSODA", "grid_points": None, "eps": None,
}  # fmt: skip


def integrate(system: System) -> Tensor:
    """Return the states at all times, `(T, *shape)`.

    Raises:
        ModuleNotFoundError: there is no scipy.
    """
    options = use("scipy_solver", system.options, OPTIONS)
    y0, shape = system.y0.detach(), system.y0.shape
    if len(system.t) == 1:
        return y0[None]
    scipy = importlib.import_module("scipy.integrate")

    def f(t: float, y: Any) -> Any:
        state = torch.as_tensor(y, device=y0.device).to(y0.dtype).reshape(shape)
        with torch.no_grad():
            return system.slope(system.time(t), state).reshape(-1).cpu().numpy()

    t = system.t.detach().double().cpu().numpy()
    bounds = {"max_step": options["max_step"]}
    if options["solver"] == "LSODA":
        bounds["min_step"] = options["min_step"]
    tolerances = {
        name: tol.cpu().numpy() if isinstance(tol, Tensor) else tol
        for name, tol in (("rtol", system.rtol), ("atol", system.atol))
    }
    found = scipy.solve_ivp(
        f, (t[0], t[-1]), y0.reshape(-1).cpu().numpy(), t_eval=t, method=options["solver"],
        **tolerances, **bounds,
    )  # fmt: skip
    states = torch.as_tensor(found.y.T).to(device=y0.device, dtype=y0.dtype)
    return states.reshape(-1, *shape)
