"""Frames as the reader gives them, made by formula: same input, same picture."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

LABELS = {
    0: "accuracy",
    1: "dt_min",
    2: "dt_max",
    3: "end of span",
    4: "event",
    5: "jump",
    6: "non-finite",
    7: "first step",
}


def steps_of(n: int, row: int = 0, tried: float = 0.25) -> pd.DataFrame:
    """Return `n` attempts of a row of which the share `tried` is refused."""
    attempt = np.arange(n)
    refused = (attempt * 7919 % 1000) < 1000 * tried
    dt = 0.01 * 10 ** (1.5 * np.sin(attempt / 40.0))
    t = np.concatenate([[0.0], np.cumsum(np.where(refused, 0.0, dt))[:-1]]) if n else np.zeros(0)
    ratio = np.where(refused, 1.5 + attempt % 7, 0.2 + 0.7 * (attempt % 11) / 11)
    share = -np.log10(ratio) if n else np.zeros(0)
    return pd.DataFrame(
        {
            "solve": 0,
            "attempt": attempt,
            "instance": row,
            "t": t,
            "dt": dt,
            "error_ratio": ratio.astype("f4"),
            "accepted": (~refused).astype("u1"),
            "limiting_component": attempt % 3,
            "limiter": np.where(attempt == 0, 7, attempt // 50 % 4),
            "factor": 10 ** (0.2 * share),
            "share_p": 0.04 * share,
            "share_i": 0.1 * share,
            "share_d": 0.01 * np.cos(attempt),
            "clamped": np.where(attempt % 90 == 5, 1, np.where(attempt % 90 == 50, -1, 0)),
        }
    )


def instances_of(batch: int) -> pd.DataFrame:
    """Return counts of `batch` rows, most expensive first."""
    row = np.arange(batch)
    accepted = 100 + 3 * (row * 37 % 101)
    refused = row * 13 % 29
    table = pd.DataFrame(
        {
            "instance": row,
            "n_steps": accepted + refused,
            "n_accepted": accepted,
            "n_rejected": refused,
        }
    )
    return table.sort_values("n_steps", ascending=False, kind="stable")


def states_of(batch: int, points: int = 100, dim: int = 2) -> pd.DataFrame:
    """Return trajectories of `batch` rows: circles of growing radius."""
    t = np.linspace(0.0, 10.0, points)
    parts = [
        pd.DataFrame(
            {"solve": 0, "instance": row, "t": t}
            | {f"y{d}": (1 + row) * np.cos(t + d) for d in range(dim)}
        )
        for row in range(batch)
    ]
    return pd.concat(parts, ignore_index=True)


def quantiles_of(n: int, batch: int = 64) -> pd.DataFrame:
    """Return the spread of the step sizes over `n` attempts."""
    attempt = np.arange(n)
    middle = -2 + 0.5 * np.sin(attempt / 30.0)
    ends = {"q05": -1.0, "q25": -0.4, "q50": 0.0, "q75": 0.3, "q95": 0.8}
    table = {name: 10 ** (middle + shift) for name, shift in ends.items()}
    return pd.DataFrame({"attempt": attempt} | table | {"active": np.maximum(1, batch - attempt)})


@pytest.fixture
def frames() -> SimpleNamespace:
    """The makers above, under one name."""
    return SimpleNamespace(
        labels=LABELS,
        steps=steps_of,
        instances=instances_of,
        states=states_of,
        quantiles=quantiles_of,
    )
