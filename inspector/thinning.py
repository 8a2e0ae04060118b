"""Keeps the steps of every k-th solve or iteration, of the worst between those, and of the last."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import final

from inspector.store.output import Block, Kind

MOST_HELD = 1 << 20  # rows of one unit that wait in memory for the verdict

Badness = tuple[float, float]  # failed rows, attempts of the slowest row
NOTHING: Badness = (-1.0, -1.0)


@dataclass(eq=False)
class Unit:
    """The solves of one iteration, or one solve with its backward solves."""

    key: Hashable
    keep: bool
    badness: Badness = NOTHING
    blocks: list[tuple[int, Block, Kind]] = field(default_factory=list)
    rows: int = 0  # waiting, the most they can be
    solves: set[int] = field(default_factory=set)  # with blocks that wait or were let go
    dropped: dict[int, int] = field(default_factory=dict)  # solve -> rows let go


@final
class Thinning:
    """Holds the blocks of units that are left out until it is known that they are neither the worst
    of their stretch nor the last; what is let go is counted.

    The worst of a stretch is written only if it is worse than everything written before. Blocks are
    measured when they are written, so those that are not cost next to nothing.

    Args:
        every: unit that is kept as it comes.
        write: takes a block of a solve.
        drop: told of a solve's rows that are let go.
        decided: told of each solve that was held back, when no more of it will come.
    """

    def __init__(
        self,
        every: int,
        write: Callable[[int, Block, Kind], None],
        drop: Callable[[int, int], None],
        decided: Callable[[int], None],
    ) -> None:
        self._every, self._write, self._drop, self._decided = every, write, drop, decided
        self._lock = threading.RLock()
        self._count = 0
        self._units: dict[Hashable, Unit] = {}  # not yet decided; the last one stands last
        self._worst: Unit | None = None  # of this stretch, among those left out
        self._written = NOTHING  # the worst that is on the disk

    def begin(self, key: Hashable) -> bool:
        """Say that a solve of this unit begins; returns whether its steps are held back."""
        with self._lock:
            if key in self._units:
                return not self._units[key].keep
            keep = self._count % self._every == 0
            self._count += 1
            for unit in list(self._units.values()):
                self._left(unit)
            if keep:
                self._spill()
            self._units = {key: Unit(key, keep)}
            return not keep

    def steps(self, key: Hashable, solve: int, block: Block, kind: Kind) -> None:
        """Take a block; what comes after its unit was decided shares the unit's fate."""
        with self._lock:
            unit = self._units.get(key)
            if unit is None or unit.keep:
                self._write(solve, block, kind)
                return
            unit.solves.add(solve)
            if unit.rows + block.rows > MOST_HELD:
                if kind == "steps":
                    unit.dropped[solve] = unit.dropped.get(solve, 0) + block.counted()
            else:
                unit.rows += block.rows
                unit.blocks.append((solve, block, kind))

    def ended(self, key: Hashable, failed: int, slowest: int) -> None:
        """Say how a solve ended."""
        with self._lock:
            unit = self._units.get(key)
            if unit is not None:
                unit.badness = max(unit.badness, (float(failed), float(slowest)))

    def close(self) -> None:
        """Write what is last and what is worst."""
        with self._lock:
            units, self._units = list(self._units.values()), {}
            for unit in units:
                self._put(unit)
            self._spill()

    def _left(self, unit: Unit) -> None:
        """Decide on a unit that is not the last one any more."""
        if unit.keep:
            self._written = max(self._written, unit.badness)
            return
        worst = self._worst
        if unit.badness > max(self._written, NOTHING if worst is None else worst.badness):
            self._worst, unit = unit, worst or Unit(None, True)
        self._let_go(unit)

    def _spill(self) -> None:
        """Write the worst of the stretch that ends."""
        worst, self._worst = self._worst, None
        if worst is None:
            return
        if worst.badness > self._written:
            self._put(worst)
        else:
            self._let_go(worst)

    def _put(self, unit: Unit) -> None:
        blocks, unit.blocks = unit.blocks, []
        for solve, block, kind in blocks:
            self._write(solve, block, kind)
        self._written = max(self._written, unit.badness)
        self._let_go(unit)

    def _let_go(self, unit: Unit) -> None:
        for solve, block, kind in unit.blocks:
            if kind == "steps":
                unit.dropped[solve] = unit.dropped.get(solve, 0) + block.counted()
        for solve, rows in unit.dropped.items():
            self._drop(solve, rows)
        for solve in unit.solves:
            self._decided(solve)
        unit.blocks, unit.dropped, unit.solves = [], {}, set()
