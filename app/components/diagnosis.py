"""What limits a solve, with its evidence, and a button that tries the change beside it."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from app import explain, frame, session
from app.cached import ask
from app.components.chart import code, heading, plain
from app.components.row_sentence import sentence_of
from app.controls.numbers import short
from app.live.state import LIVE, look

if TYPE_CHECKING:
    from inspector.diagnosis import Diagnosis, Finding
    from inspector.run import Run

POLL = 1.0  # seconds between looks at a change that is being tried
AGAIN = 5.0  # seconds until a run that grows is judged anew
SURE: Mapping[str, tuple[str, Literal["green", "blue", "gray"], str]] = {
    "measured": ("measured", "green", "The records show the cause itself."),
    "likely": ("likely", "blue", "The records show what such a cause leads to."),
    "possible": ("possible", "gray", "It may matter; trying it would tell."),
}
FIGURES = {
    "attempts": "Attempts",
    "refused": "Refused",
    "evaluations": "Evaluations",
    "attempts of the slowest": "Slowest row",
    "failed instances": "Failed rows",
    "seconds": "Seconds",
}
SKIPPED = ("parent", "attempts_per_second", "keep_running", "tried")


def panel(run: "Run", solve: int, *, live: bool = False) -> None:
    """Draw what the rules find in a solve.

    Args:
        live: whether the run still grows; then nothing can be tried, and it is judged now and then.
    """
    found = judged(run, solve) if live else ask(diagnosis_of, run, solve)
    with st.container(key="diagnosis", gap="xsmall"):
        heading("What limits this solve?", words(found), data=None)
        if not found.findings:
            st.success(
                "No rule has anything to say: steps, refusals, tolerances and bounds look right.",
                icon=":material/check_circle:",
            )
        for place, finding in enumerate(found.findings):
            one(run, solve, finding, place, live=live)
        unknown(found)


def verdict(run: "Run", solve: int, slowest: int) -> None:
    """Say in two lines which row was slowest and why, and what to do about it."""
    instances = ask(type(run).instances, run, solve)
    if slowest < 0 or slowest not in set(instances["instance"]):
        return
    found = ask(diagnosis_of, run, solve)
    with st.container(border=True, key="verdict", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{plain(sentence_of(run, solve, slowest, instances))}**",
                        width="stretch")  # fmt: skip
            st.page_link(
                "views/instances.py",
                label="Look into it",
                icon=":material/troubleshoot:",
                query_params={"solve": str(solve), "inst": str(slowest)},
                width="content",
            )
        first = next(iter(found.findings), None)
        if first is None:
            st.caption("No rule finds anything that would make it faster.")
            return
        tried = session.get(held_under(run, solve, first, 0))
        if tried is not None:
            st.markdown(f":material/science: {plain(outcome(run, solve, tried))}")
            return
        key = " Press T to try it." if first.change and run.spec and not session.read_only() else ""
        st.markdown(f":material/lightbulb: {plain(first.title)}. {text(first.advice)}{key}")


def outcome(run: "Run", solve: int, name: str) -> str:
    """Return what trying a change came to, in one sentence."""
    from inspector import queries

    now = look(name, frame.workers())
    if now.live or now.run is None or not now.run.n_solves:
        return f"Trying it: {now.word}."
    table = queries.compare(run, now.run, min(solve, now.run.n_solves - 1)).set_index("quantity")
    a, b = (float(table[side]["attempts"]) for side in ("a", "b"))
    return (
        f"Tried: {explain.count(b)} attempts where it took {explain.count(a)} "
        f"({difference(a, b)}). The numbers stand below."
    )


def held_under(run: "Run", solve: int, finding: "Finding", place: int) -> str:
    """Return the key under which the session keeps the run that tries a finding's change."""
    return f"_tried_{run.id}_{solve}_{finding.rule}_{place}"


def diagnosis_of(run: "Run", solve: int) -> "Diagnosis":
    """Return what the rules find in a solve."""
    from inspector.diagnosis import diagnose

    return diagnose(run, solve)


def judged(run: "Run", solve: int) -> "Diagnosis":
    """Return the same for a run that grows, at most every few seconds."""
    key = ("_diagnosed", run.id, solve)
    due, found = session.get(str(key), (0.0, None))
    began = time.monotonic()
    if found is None or began > due:
        found = diagnosis_of(run, solve)
        took = time.monotonic() - began
        session.put(str(key), (began + max(AGAIN, 20 * took), found))
    return found


def words(found: "Diagnosis") -> str:
    """Say how many rules had something to say."""
    count = len(found.findings)
    return f"{count} finding{'' if count == 1 else 's'}, the costliest first" if count else ""


def unknown(found: "Diagnosis") -> None:
    """Say what could not be judged."""
    for name, why in found.not_judged.items():
        st.caption(f":material/visibility_off: Not judged: {plain(name)}: {plain(why)}.")
    for note in found.notes:
        st.caption(plain(note))


def one(run: "Run", solve: int, finding: "Finding", place: int, *, live: bool) -> None:
    """Draw one finding: what was seen, how sure, what to do, and what trying it gave."""
    key = f"{finding.rule}_{place}"
    word, colour, help = SURE[finding.certainty]
    with st.container(border=True, key=f"finding_{key}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{plain(finding.title)}**", width="content")
            st.badge(word, color=colour, help=help)
        st.markdown(f"{text(finding.evidence)}.")
        st.markdown(f":material/lightbulb: {text(finding.advice)}")
        evidence(solve, finding)
        if finding.change is not None and run.spec:
            effect(run, solve, finding, place, live=live)


def text(sentence: str) -> str:
    """Return a rule's sentence for the page, where code is not set apart."""
    return plain(sentence.replace("`", ""))


def evidence(solve: int, finding: "Finding") -> None:
    """Link to the rows and times where it was seen."""
    if not finding.rows:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for row in finding.rows[:4]:
            st.page_link(
                "views/instances.py",
                label=f"Row {row}",
                icon=":material/troubleshoot:",
                query_params={"solve": str(solve), "inst": str(row)},
                width="content",
            )
        if finding.times:
            told = ", ".join(
                f"t = {short(low)}" if low == high else f"t = {short(low)} to {short(high)}"
                for low, high in finding.times
            )
            st.caption(f"Row {finding.rows[0]}: {plain(told)}", width="content")


def changed(spec: Mapping[str, Any], finding: "Finding") -> dict[str, Any]:
    """Return the spec with a finding's change, as a run of its own."""
    assert finding.change is not None
    new = {key: value for key, value in spec.items() if key not in SKIPPED}
    return new | dict(finding.change)


def in_words(change: Mapping[str, Any], gains: Mapping[str, Any]) -> str:
    """Return a change of settings as text; of a controller only what differs from its gains."""
    parts = []
    for name, value in change.items():
        if isinstance(value, Mapping):
            inside = [f"{k} {short(v)}" for k, v in value.items() if k != "name"]
            new = [f"{k} {short(v)}" for k, v in value.items() if k != "name" and gains.get(k) != v]
            value = " ".join([str(value.get("name", "")), ", ".join(new or inside)]).strip()
        parts.append(f"{name} = {'none' if value is None else short(value)}")
    return "; ".join(parts)


def effect(run: "Run", solve: int, finding: "Finding", place: int, *, live: bool) -> None:
    """Offer to try the change, follow the run that does, and draw what it gained."""
    assert finding.change is not None
    held = held_under(run, solve, finding, place)
    tried = session.get(held)
    if tried is None:
        if not session.read_only():
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.button(
                    "Try it",
                    icon=":material/play_arrow:",
                    key=f"try_{finding.rule}_{place}",
                    shortcut="T" if place == 0 else None,
                    disabled=live,
                    on_click=start,
                    args=(run, finding, held),
                    help="Runs the same problem with this change beside the original."
                    if not live
                    else "Possible when this run has ended.",
                )
                old = run.settings(solve).get("controller_settings") or {}
                st.caption(plain(in_words(finding.change, old)), width="content")
        return
    workers = frame.workers()
    growing = look(tried, workers).word in LIVE

    @st.fragment(run_every=POLL if growing else None)
    def follow() -> None:
        now = look(tried, workers)
        if now.live:
            workers.watch(tried, session.session_id())
            st.caption(f":material/sync: Trying it: {plain(now.word)}.")
            return
        if growing:
            st.rerun()  # ends the polling
        if now.run is None or not now.run.n_solves:
            st.error("The run that tried it left nothing: " + plain(now.word))
            return
        gained(run, solve, tried, now.run)

    follow()


def start(run: "Run", finding: "Finding", held: str) -> None:
    """Start the run that tries a change."""
    spec = changed(run.spec or {}, finding)
    spec |= {"attempts_per_second": None, "parent": run.id, "tried": finding.rule}
    session.put(held, frame.workers().start(spec, session.session_id()))


def gained(run: "Run", solve: int, name: str, other: "Run") -> None:
    """Draw the difference that trying a change made, in numbers."""
    from inspector import queries
    from inspector.store.files import number

    there = min(solve, other.n_solves - 1)
    table = queries.compare(run, other, there).set_index("quantity")
    compiled = [number(each.settings(at).get("compile_seconds", 0.0)) or 0.0
                for each, at in ((run, solve), (other, there))]  # fmt: skip
    slowed = any((each.spec or {}).get("attempts_per_second") for each in (run, other))
    with st.container(horizontal=True):
        for quantity, title in FIGURES.items():
            before, after = float(table["a"][quantity]), float(table["b"][quantity])
            if quantity == "seconds":
                if slowed:
                    continue
                before, after = before - compiled[0], after - compiled[1]
            show = explain.duration if quantity == "seconds" else explain.count
            st.metric(title, show(after), delta=difference(before, after), border=True,
                      delta_color="inverse" if before != after else "off",
                      delta_arrow="auto" if before != after else "off",
                      help=f"before: {show(before)}")  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        once = (
            f"; {explain.duration(compiled[1])} of compiling, once, left out" if compiled[1] else ""
        )
        st.caption(f"Tried as {code(name)}{once}", width="content")
        if st.button("Open it", icon=":material/monitoring:", key=f"open_{name}", type="tertiary"):
            session.show_run(name)
            st.rerun()
        if st.button(
            "Side by side",
            icon=":material/compare_arrows:",
            key=f"beside_{name}",
            type="tertiary",
            help="Opens Live with the original drawn behind it.",
        ):
            session.show_run(name)
            st.switch_page("views/live.py")


def difference(before: float, after: float) -> str | None:
    """Return how much more or less there is, as people say it."""
    if before != before or after != after:
        return None
    if before == after:
        return "same"
    if before > 0:
        return f"{100 * (after / before - 1):+.0f} %"
    return f"{after - before:+.0f}"
