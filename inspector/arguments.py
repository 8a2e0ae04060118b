"""Arguments of the recorder, checked once where they are given."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
from torch import Tensor

from solver.catalogue import statistic_by_name
from solver.catalogue import statistics as all_statistics
from solver.statistics.base import Statistic


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return the folder a run may have.

    Raises:
        ValueError: it has no name, or one that no folder can have.
    """
    text = os.fspath(path)
    allowed = "must name the folder of a run"
    if not isinstance(text, str) or "\0" in text or Path(text).name in ("", ".."):
        raise ValueError(f"path={path!r}: {allowed}")
    longest = len(os.fsencode(Path(text).name))
    if longest > 255:
        raise ValueError(f"path={path!r}: {allowed} of at most 255 bytes, not {longest}")
    return Path(text)


def checked_statistics(
    statistics: Literal["all"] | Iterable[str | Statistic],
) -> tuple[str | Statistic, ...]:
    """Return the statistics to keep; "all" are those found now.

    Raises:
        ValueError, TypeError: one of them is unknown, or no statistic.
    """
    if isinstance(statistics, str):
        if statistics != "all":
            raise ValueError(f"statistics={statistics!r}: must be 'all', or names in a list")
        return tuple(all_statistics())
    wanted = tuple(statistics)
    for each in wanted:
        if isinstance(each, str):
            statistic_by_name(each)  # raises with the nearest name
        elif not isinstance(each, Statistic):
            raise TypeError(f"statistics holds {each!r}: must be names or Statistic objects")
    return wanted


def limit(name: str, value: int | None) -> int | None:
    """Return the most that may be stored.

    Raises:
        ValueError: it is no number of at least 1.
    """
    if value is not None and (isinstance(value, bool) or not value >= 1):
        raise ValueError(f"{name}={value!r}: must be a number of at least 1, or None")
    return None if value is None else int(value)


def numbers(name: str, values: Iterable[int] | None) -> np.ndarray | None:
    """Return numbers of instances, ascending and each once.

    Raises:
        ValueError: something is no such number.
    """
    if values is None:
        return None
    plain = values.tolist() if isinstance(values, Tensor | np.ndarray) else list(values)
    for value in plain:
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
            raise ValueError(f"{name} holds {value!r}: must be numbers of instances from 0 on")
    return np.unique(np.array(plain, "i8"))


def checked_states(states: int | Iterable[int]) -> int | np.ndarray:
    """Return how many instances have their states kept, or which.

    Raises:
        ValueError, TypeError: it is neither.
    """
    if isinstance(states, int) and not isinstance(states, bool):
        if states < 0:
            raise ValueError(f"states={states}: must be a number of instances, or their numbers")
        return states
    if isinstance(states, bool | str):
        raise TypeError(f"states={states!r}: must be a number of instances, or their numbers")
    found = numbers("states", states)
    return 0 if found is None or not len(found) else found


def chosen(instances: slice | np.ndarray | None, batch: int) -> np.ndarray | None:
    """Return the instances of a batch to keep, None for all."""
    if instances is None:
        return None
    if isinstance(instances, slice):
        return np.unique(np.arange(batch)[instances])
    return instances[instances < batch]


def spread(states: int | np.ndarray, batch: int) -> np.ndarray:
    """Return the instances of a batch whose states are kept."""
    if isinstance(states, int):
        count = min(states, batch)
        return np.linspace(0, batch - 1, count).round().astype("i8") if count else np.empty(0, "i8")
    return states[states < batch]
