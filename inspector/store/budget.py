"""Makes room when a run may not grow beyond some size: which solves lose their steps."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

WORST = 4  # kept of the slowest, and of those with most failed rows


@dataclass(eq=False)
class Stored:
    """The steps of one solve, or of all solves of one iteration."""

    number: int
    rows: dict[int, int] = field(default_factory=dict)  # solve -> rows
    files: dict[Path, int] = field(default_factory=dict)  # -> bytes
    slowest: int = 0  # attempts of the slowest row
    failed: int = 0  # rows


@final
class Budget:
    """Keeps steps of every k-th unit, with k = 1, 2, 4, ... as the room is used up.

    The last unit and the worst ones are kept always, even beyond the budget.

    Args:
        rows, size: most rows and bytes; None for no limit.
    """

    def __init__(self, rows: int | None, size: int | None) -> None:
        self._limits = (rows, size)
        self.stride = 1
        self._units: dict[Hashable, Stored] = {}
        self._loose: dict[Hashable, Stored] = {}  # those the stride leaves out
        self._slowest: list[Stored] = []
        self._failed: list[Stored] = []
        self._began = self._rows = self._size = 0

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return any(limit is not None for limit in self._limits)

    def unit(self, key: Hashable) -> Stored:
        """Return a unit, begun if it is new."""
        found = self._units.get(key)
        if found is None:
            found = self._units[key] = Stored(self._began)
            if self._began % self.stride:
                self._loose[key] = found
            self._began += 1
        return found

    def add(self, key: Hashable, solve: int, rows: int, file: Path, size: int) -> None:
        """Count rows written for a solve, and the bytes its file has now."""
        unit = self.unit(key)
        unit.rows[solve] = unit.rows.get(solve, 0) + rows
        self._rows += rows
        self._size += size - unit.files.get(file, 0)
        unit.files[file] = size

    def ended(self, key: Hashable, failed: int, slowest: int) -> None:
        """Say how a solve of a unit ended."""
        unit = self.unit(key)
        unit.failed, unit.slowest = max(unit.failed, failed), max(unit.slowest, slowest)
        ranked = [one for one in self._slowest if one is not unit] + [unit]
        self._slowest = sorted(ranked, key=lambda one: -one.slowest)[:WORST]
        if unit.failed:
            ranked = [one for one in self._failed if one is not unit] + [unit]
            self._failed = sorted(ranked, key=lambda one: -one.failed)[:WORST]

    def make_room(self) -> list[Stored]:
        """Return the units that must go, and forget them."""
        gone = self._let_go()
        while self._over() and self.stride <= self._began:
            self.stride *= 2
            self._loose = {k: u for k, u in self._units.items() if u.number % self.stride}
            gone += self._let_go()
        return gone

    def _over(self) -> bool:
        used = (self._rows, self._size)
        return any(
            limit is not None and here > limit
            for here, limit in zip(used, self._limits, strict=True)
        )

    def _let_go(self) -> list[Stored]:
        """Take out what the stride leaves out, but for the last and the worst."""
        last = next(reversed(self._units.values()), None)
        kept = {last, *self._slowest, *self._failed}
        gone = {key: unit for key, unit in self._loose.items() if unit not in kept}
        for key, unit in gone.items():
            del self._units[key], self._loose[key]
            self._rows -= sum(unit.rows.values())
            self._size -= sum(unit.files.values())
        return list(gone.values())
