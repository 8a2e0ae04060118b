"""What a report says, from above to below."""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from app import describe, explain, run_facts
from app.controls.numbers import short
from app.frames import floats, ints, only
from app.report import pictures
from app.report.parts import Figures, Html, code, facts, frame, joined, marked, section, table, tag

if TYPE_CHECKING:
    from inspector.run import Run

MOST_ATTEMPTS = 20_000_000  # of a solve that is drawn
MOST_FAILED = 50
MOST_ROWS = 12
STATES = {
    "running": "still being recorded",
    "interrupted": "interrupted: its process is gone without a word",
    "failed": "broken off by an error",
    "cancelled": "cancelled",
    "empty": "empty",
}
SURE = {
    "measured": "measured: the records show the cause itself",
    "likely": "likely: the records show what such a cause leads to",
    "possible": "possible: trying the change would tell",
}
Described = Mapping[str, Any]
SKIPPED = ("parent", "attempts_per_second", "keep_running", "tried")
OWN = """\
from inspector import Inspector
from solver import solve_ivp

with Inspector("runs/again", statistics="all") as inspector:
    solve_ivp(f, y0, t_eval, hooks=[inspector])
"""


def title(run: "Run") -> str:
    """Return what the page is called."""
    return f"{run.id}: report"


def page(run: "Run", solve: int | None, figures: Figures) -> Html:
    """Return the body of the page.

    Raises:
        KeyError: there is no such solve.
    """
    known = describe.load() or describe.stale()
    if solve is None:
        solve = costliest(run)
    elif run.n_solves == 0 or not 0 <= solve < run.n_solves:
        run.solve_state(solve)  # says what there is
    parts: list[object] = [head(run, known), warnings(run)]
    parts.append(pictures.of_a_training(run, figures))
    if run.n_solves:
        parts.append(one_solve(run, solve, known, figures))
    parts += [
        pictures.of_logged_numbers(run, figures),
        adjoints(run),
        study(run),
        happened(run),
        settings(run, solve, known),
        again(run),
        tag("noscript", tag("p", "The figures need JavaScript; all tables do without.")),
    ]
    return tag("main", *parts)


def costliest(run: "Run") -> int:
    """Return the solve with the most attempts; 0 where there is none."""
    if run.n_solves < 2:
        return 0
    cost = np.nan_to_num(floats(run.solve_table(), "n_steps"), nan=-1.0)
    return int(np.argmax(cost))


def head(run: "Run", known: Described | None) -> Html:
    """Return title, state and facts."""
    about = run.summary()
    told: list[str] = []
    created = about.get("created")
    if isinstance(created, int | float) and created > 0:
        told.append(f"recorded {datetime.fromtimestamp(float(created)):%d %b %Y %H:%M}")
    if about.get("seconds"):
        told.append(explain.duration(float(about["seconds"])))
    solves = int(about.get("solves") or 0)
    told.append(f"{explain.count(solves)} solve{'' if solves == 1 else 's'}")
    told.append(f"{explain.count(about.get('rows') or 0)} attempts recorded")
    told.append(explain.size(about.get("bytes")))
    problem = about.get("problem")
    name = run_facts.title_of(known, run.id, problem)
    note, tags = str(about.get("note") or ""), run.meta.get("tags")
    labels = [str(one) for one in tags] if isinstance(tags, list | tuple) else []
    return tag(
        "header",
        tag("h1", name, *(tag("span", label, class_="badge") for label in labels)),
        tag("p", tag("code", run.id), f" · {' · '.join(told)}", class_="muted"),
        tag("p", note) if note else "",
        tag(
            "p",
            f"Report of {datetime.fromtimestamp(time.time()):%d %b %Y %H:%M}, made by Stepscope.",
            class_="muted",
        ),
    )


def warnings(run: "Run") -> Html:
    """Return what is wrong with the run, and what that means for the report."""
    said: list[object] = []
    if run.status in STATES:
        shown = " What was written until now is shown." if run.live else ""
        said.append(f"This run is {STATES[run.status]}.{shown}")
    lost = {name: number for name, number in run.lost.items() if number}
    if lost:
        parts = ", ".join(
            f"{explain.count(n)} {name.replace('_', ' ')}" for name, n in lost.items()
        )
        said.append(f"While it was recorded: {parts}.")
    damage = run.damage
    if damage:
        named = "; ".join(f"{item.file} {item.what}" for item in damage[:5])
        said.append(f"This run is damaged, what is whole is shown: {named}.")
    return joined(*(tag("p", sentence, class_="warning") for sentence in said))


def one_solve(run: "Run", solve: int, known: Described | None, figures: Figures) -> Html:
    """Return numbers, findings, figures and rows of a solve."""
    from inspector import queries

    rows = float(floats(run.solve_table(), "rows")[solve])
    several = (
        f"The numbers and figures below are of solve {solve}, of {run.n_solves}."
        if run.n_solves > 1
        else ""
    )
    values = queries.tiles(run, solve)
    parts: list[object] = [
        section(
            "Overview",
            pictures.of_all_solves(run, solve, figures),
            tag("p", several) if several else "",
            tiles(values, run.solve_state(solve).batch),
        )
    ]
    if rows > MOST_ATTEMPTS:
        parts.append(
            tag(
                "p",
                f"The solve holds {explain.count(rows)} attempts, more than are drawn. Read them "
                "with `inspector.open_run`, or ask them in SQL.",
                class_="warning",
            )
        )
        return joined(*parts)
    instances = run.instances(solve)
    if instances.empty or not floats(instances, "n_steps").any():
        parts.append(tag("p", "No step of this solve is recorded."))
        return joined(*parts)
    slowest = int(ints(instances, "instance")[0])
    parts += [
        findings(run, solve),
        pictures.of_a_solve(run, solve, instances, figures),
        failed(run, solve),
        section("The slowest rows", slow_rows(instances)),
        pictures.of_a_row(run, solve, slowest, known, figures),
    ]
    return joined(*parts)


def tiles(values: dict[str, Any], batch: int) -> Html:
    """Return the numbers that say most about a solve."""
    slowest, share = values.get("slowest", -1), values.get("accept_share")
    refused = None if share is None else 1 - share
    return facts(
        {
            "Attempts of the batch": explain.count(values.get("attempts")),
            "Refused": explain.percent(refused),
            "Failed rows": f"{explain.count(values.get('failed'))} of {batch}",
            "Wasted evaluations": explain.percent(values.get("wasted_share")),
            "Evaluations/s": explain.count(values.get("evals_per_second")),
            "Slowest row": explain.NOTHING if slowest < 0 else slowest,
        }
    )


def findings(run: "Run", solve: int) -> Html:
    """Return what the rules find."""
    from inspector.diagnosis import diagnose

    found = diagnose(run, solve)
    parts: list[object] = []
    for one in found.findings:
        rows = f"Rows {', '.join(map(str, one.rows))}." if one.rows else ""
        change = f"To try: {json.dumps(dict(one.change))}" if one.change is not None else ""
        parts.append(
            tag(
                "div",
                tag("h3", one.title),
                tag("span", one.certainty, class_="badge", title=SURE.get(one.certainty)),
                tag("p", marked(f"{one.evidence}.")),
                tag("p", marked(one.advice)),
                tag("p", f"{rows} {change}".strip(), class_="muted") if rows or change else "",
                class_="finding",
            )
        )
    if not parts:
        parts.append(tag("p", "No rule has anything to say."))
    told = [f"{name}: {why}" for name, why in found.not_judged.items()]
    if told:
        parts.append(tag("p", f"Not judged: {'; '.join(told)}.", class_="muted"))
    parts += [tag("p", note, class_="muted") for note in found.notes]
    return section("What limits it", *parts)


def failed(run: "Run", solve: int) -> Html:
    """Return the rows that did not reach their end."""
    from inspector import queries

    rows = queries.failed_rows(run, solve)
    lines = [
        (
            row["instance"],
            explain.STATUSES.get(str(row["status_name"]), row["status_name"]),
            short(float(row["t_reached"])),
            explain.count(float(row["n_steps"])),
            row["message"],
        )
        for row in rows.head(MOST_FAILED).to_dict("records")
    ]
    more = f"; the first {MOST_FAILED} are listed" if len(rows) > MOST_FAILED else ""
    return section(
        "Rows that failed",
        table(
            ("row", "why", "ended at t", "attempts", "what the solver said"),
            lines,
            caption=f"{len(rows)} of {run.solve_state(solve).batch} rows failed{more}",
        ),
    )


def slow_rows(instances: pd.DataFrame) -> Html:
    """Return the rows with the most attempts."""
    names = ["instance", *run_facts.parameters_of(instances)[:4]]
    names += ["n_steps", "n_rejected", "dt_min", "dt_median", "t_reached", "status_name"]
    return frame(only(instances, *names), MOST_ROWS, caption="Rows by attempts")


def adjoints(run: "Run") -> Html:
    """Return a comparison of gradient modes, if the run holds one."""
    from inspector.adjoints import FILE, Comparison

    if not (run.path / FILE).exists():
        return Html("")
    found = Comparison(run.path).table()
    return section("Gradient modes", frame(found, 60, caption="Each mode at each value"))


def study(run: "Run") -> Html:
    """Return the settings that were tried, if the run holds a study."""
    from inspector.studies import FILE, Study, precision_table, tuning_table

    if not (run.path / FILE).exists():
        return Html("")
    found = Study(run.path)
    make = tuning_table if (run.spec or {}).get("kind") == "tune" else precision_table
    return section(
        "Settings tried",
        frame(make(found.entries()).iloc[:, :14], 80, caption="One line a setting"),
    )


def happened(run: "Run") -> Html:
    """Return the events of the run."""
    events = run.events()
    if events.empty:
        return Html("")
    lines = [
        (datetime.fromtimestamp(at).strftime("%d %b %H:%M:%S") if at == at else "", kind, said)
        for at, kind, said in zip(
            floats(events, "time"), events["kind"], events["text"], strict=True
        )
    ]
    return section("What else happened", table(("when", "kind", "what"), lines[:100]))


def settings(run: "Run", solve: int, known: Described | None) -> Html:
    """Return the settings of the solve, those that differ from their default first."""
    parts: list[object] = []
    if run.n_solves:
        found = run_facts.settings_of(run.settings(solve), run.spec)
        changed, same = run_facts.changed_first(found, known)
        lines = [(name, short(value), "changed") for name, value in changed.items()]
        lines += [(name, short(value), "default") for name, value in same.items()]
        parts.append(table(("setting", "value", ""), lines, caption=f"Settings of solve {solve}"))
    versions = run.meta.get("versions")
    if isinstance(versions, dict) and versions:
        parts.append(table(("package", "version"), list(versions.items()), caption="Versions"))
    return section("Settings", *parts)


def again(run: "Run") -> Html:
    """Return how to do the run once more."""
    if not run.spec:
        return section(
            "How to reproduce",
            tag("p", "This run was recorded by a script of its own; its solves are done again by "
                "running that with a recorder:"),
            code(OWN),
        )  # fmt: skip
    spec = {key: value for key, value in run.spec.items() if key not in SKIPPED}
    return section(
        "How to reproduce",
        tag("p", marked("Save this as `spec.json` and run `stepscope run spec.json`; the seed is "
            "in it, so that the rows are the same:")),
        code(json.dumps(spec, indent=1, ensure_ascii=False)),
    )  # fmt: skip
