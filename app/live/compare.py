"""What another setting changed: this run beside the one it was started from."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from app import describe, session
from app.components.chart import data_of
from app.controls.numbers import short
from app.live.data import count
from app.live.state import Shown, filled

if TYPE_CHECKING:
    from inspector.run import Run

FIGURES = {
    "attempts": "attempts",
    "refused": "refused",
    "evaluations": "evaluations",
    "attempts of the slowest": "slowest row",
    "seconds": "seconds",
}


def other_run(shown: Shown) -> "tuple[str, Run] | None":
    """Return the run to compare with: `?cmp=`, else the one this run was started from."""
    asked = session.param("cmp") or shown.spec.get("parent")
    if not asked or asked == shown.id:
        return None
    run = session.open_run(str(asked))
    return (str(asked), run) if run is not None and run.n_solves else None


def changed(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return what differs between two specs: name, value before, value now."""
    skip = {"parent", "statistics", "attempts_per_second", "keep_running"}
    found = []
    for key in [k for k in {**one, **other} if k not in skip]:
        a, b = one.get(key), other.get(key)
        if a == b:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            same = a.get("name") == b.get("name")
            names = [n for n in {**a, **b} if n != "name"] if same else ["name"]
            found += [
                (n if same else key, a.get(n), b.get(n)) for n in names if a.get(n) != b.get(n)
            ]
        else:
            found.append((key, a, b))
    return found


def steady_of(spec: dict[str, Any], described: dict[str, Any]) -> float | None:
    """Return the steady error ratio of a spec's controller and method."""
    wanted = spec.get("controller") or {}
    controller = next(
        (c for c in described["controllers"] if c["name"] == wanted.get("name")), None
    )
    method = next((m for m in described["methods"] if m["name"] == spec.get("method")), None)
    if controller is None or method is None:
        return None
    values = {s["name"]: s["default"] for s in controller["settings"]} | dict(wanted)
    return describe.steady_error_ratio(controller, values, method["error_order"])


def section(shown: Shown, other: "tuple[str, Run]", described: dict[str, Any]) -> None:
    """Draw the difference in numbers, with what was changed and whether it is fair to compare."""
    from inspector import queries

    assert shown.run is not None
    name, run = other
    st.subheader("What did the change do?", anchor=False)
    spec, before = filled(shown.spec, described), filled(run.spec or {}, described)
    words = [f"{key} {short(a)} → {short(b)}" for key, a, b in changed(before, spec)]
    st.caption(f"Changed since `{name}`: " + (", ".join(words) or "nothing but the run itself"))
    table = queries.compare(run, shown.run, shown.solve)
    wanted = table[table["quantity"].isin(list(FIGURES))].set_index("quantity")
    columns = st.columns(len(FIGURES))
    for column, (quantity, title) in zip(columns, FIGURES.items(), strict=True):
        if quantity not in wanted.index:
            continue
        line: Any = wanted.loc[quantity]
        moved = bool(line["difference"])
        column.metric(
            title,
            count(float(line["b"])),
            delta_text(line),
            delta_color="inverse" if moved else "off",
            delta_arrow="auto" if moved else "off",
            border=True,
            help=f"before: {count(float(line['a']))}",
        )
    old, new = steady_of(before, described), steady_of(spec, described)
    if old is not None and new is not None and abs(old - new) > 0.005:
        st.caption(
            f":material/balance: Steady error ratio {old:.2f} before, {new:.2f} now: the runs do "
            "not aim at the same error, so part of the difference is accuracy, not skill."
        )
    data_of(table, key=f"compare-{name}-{shown.id}", title="Differences")


def delta_text(line: Any) -> str | None:
    """Return a difference with its percentage; None where nothing is known or nothing changed."""
    if line["difference"] != line["difference"]:
        return None
    if not line["difference"]:
        return "same"
    percent = "" if line["percent"] != line["percent"] else f" ({line['percent']:+.0f} %)"
    sign = "+" if line["difference"] > 0 else "-"
    return f"{sign}{count(abs(line['difference']))}{percent}"
