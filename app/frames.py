"""Typed ways into data frames: numbers of a column, rows that pass, columns that are there."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray


def floats(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return a column as float64 `(n,)`; what is missing is NaN."""
    series = pd.Series(table[column])
    return series.to_numpy(dtype="f8", na_value=np.nan)


def ints(table: pd.DataFrame, column: str) -> NDArray[np.int64]:
    """Return a column of whole numbers as int64 `(n,)`; what is missing is 0."""
    return np.nan_to_num(floats(table, column)).astype(np.int64)


def where(table: pd.DataFrame, mask: ArrayLike) -> pd.DataFrame:
    """Return the rows for which `mask (n,)` is true."""
    return table.iloc[np.flatnonzero(np.asarray(mask, dtype=bool))]


def only(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return those of the columns that the table has, in this order."""
    return table.loc[:, [column for column in columns if column in table]]


def by_instance(table: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Split a table by its column `instance`, in ascending order."""
    instance = ints(table, "instance")
    return {int(row): where(table, instance == row) for row in np.unique(instance)}
