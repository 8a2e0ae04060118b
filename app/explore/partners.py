"""Which runs may be compared before anybody has picked some."""

import pandas as pd

from app import kinds, run_list, session
from app.frames import where

MOST = 50  # runs of the same problem that are looked at


def of(baseline: str, runs: pd.DataFrame) -> list[str]:
    """Return runs that a first visit may compare with the baseline, the best one first.

    The run it was started from, or one started from it, else the newest of the same problem.

    Args:
        runs: the list of all, newest first.
    """
    ours, kind = where(runs, (runs["run"] == baseline).to_numpy()), kinds.kind_of(baseline)
    if ours.empty or kind is None:
        return []
    same = where(runs, (runs["problem"] == ours["problem"].iloc[0]).to_numpy())
    shipped = session.is_example(baseline)
    names = [str(run) for run in same["run"] if session.is_example(str(run)) == shipped][:MOST]
    known = [(run, kinds.kind_of(run)) for run in names if run != baseline]
    fitting = [(run, k.parent) for run, k in known if k is not None and k.name == kind.name]
    fitting.sort(key=lambda one: one[0] != kind.parent and one[1] != baseline)
    return [run for run, _ in fitting]


def offers(baseline: str) -> list[tuple[str, str]]:
    """Return pairs that may be compared: the two latest of one problem, and the examples."""
    runs = run_list.listed()
    names = [str(run) for run in runs["run"]][:MOST]
    own = [run for run in names if not session.is_example(run)]
    found = [(other, one) for one in own for other in of(one, runs)[:1]][:1]
    found += [(one, other) for one in session.examples()[:1] for other in of(one, runs)[:1]]
    return [pair for pair in found if baseline not in pair]
