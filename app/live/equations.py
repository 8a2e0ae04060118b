"""The field in which equations are typed: what is understood, what is wrong, and what to keep."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import session
from app.components.chart import code, plain
from app.controls.spec import starts
from app.equations.about import DRAFT, describe_text
from app.equations.export import export
from app.equations.saved import delete, name_of, save
from app.equations.system import MOST_TEXT, read
from app.equations.tree import FUNCTIONS, Fault, Refused

LINE = 200  # characters shown of one

HELP = f"""
- A state: `dx = ...`, `x' = ...` or `dx/dt = ...`
- A parameter: `mu = 5`, with the range of its slider `mu = 5 in 1..10`; `log` behind it spaces
  by factors
- Where a state starts: `x(0) = 2` or `x(0) = 2 in -3..3`; 1 if nothing is said
- The span of time: `t = 0..20`
- A name for an expression: `force = -k * x`
- `+ - * / **` (or `^`), `< <= > >=`, `and or not`, `pi e t`
- {", ".join(f"`{name}`" for name in FUNCTIONS)}
- `where(x > 0, 1, 2)` chooses; a comment begins with `#`, the first one is the title
"""


def panel(problem: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    """Draw what belongs to typed or kept equations; nothing for other problems.

    Args:
        problem: the one chosen.
        spec: what the settings add up to, for the exported file.

    Returns:
        Why these equations cannot be solved, None if they can.
    """
    if "=" not in problem.get("spec_name", ""):
        return None
    with st.container(border=True, key="pair_equations"):
        if problem["name"] == DRAFT:
            return editor(spec)
        kept(problem, spec)
    return None


def editor(spec: Mapping[str, Any]) -> str | None:
    """Draw the field, and beside it what it means."""
    text, understood = session.equations()
    if session.get("equations") is None and session.param("equations") is None:
        session.put("equations", text)
    session.put("_equations_told", starts(describe_text(understood)))
    left, right = st.columns(2, gap="medium")
    with left:
        st.text_area(
            "Equations",
            height=max(150, min(420, 40 + 25 * (text.count("\n") + 1))),
            max_chars=MOST_TEXT,
            help="Ctrl+Enter reads them, and runs them if they could be read before.",
            on_change=take_up,
            **session.keep("equations", "url"),
        )
        with st.expander("How they are written", icon=":material/help:"):
            st.markdown(HELP)
    with right:
        try:
            read(text)
        except Refused as error:
            marked(text, error.faults)
            return in_words(str(error.faults[0]))
        meaning(text)
        with st.container(horizontal=True, gap="small"):
            keep_it(text)
            download(text, spec)
    return None


def take_up() -> None:
    """Set the sliders to what the text changed; what it left alone keeps its place."""
    _, understood = session.equations()
    before = session.get("_equations_told") or {}
    for key, value in starts(describe_text(understood)).items():
        if before.get(key, value) != value or key not in before:
            session.put(key, value)


def meaning(text: str) -> None:
    """Draw equations as they are understood."""
    told = describe_text(text)
    st.latex(told["latex"])
    parts = [
        f"{told['dim']} state{'s' if told['dim'] > 1 else ''}: {', '.join(told['components'])}"
    ]
    names = [s["name"] for s in told["parameters"] if s["label"] == s["name"]]
    parts += [f"parameters: {', '.join(names)}"] if names else []
    parts += [f"t from {told['t0']:g} to {told['t1']:g}"]
    st.caption(" · ".join(parts))


def marked(text: str, faults: list[Fault]) -> None:
    """Draw a text with each fault under its line."""
    lines = text.replace("\r\n", "\n").split("\n")
    begin = 0
    for line in sorted({fault.line for fault in faults}):
        own = [fault for fault in faults if fault.line == line]
        shown = lines[begin:line]
        numbered = [f"{begin + at + 1:3}  {cut(part)}" for at, part in enumerate(shown)]
        under = [" "] * (LINE + 1)
        for fault in own:
            for column in range(fault.column, fault.column + fault.length):
                if column <= LINE:
                    under[column - 1] = "^"
        numbered.append("     " + "".join(under).rstrip())
        st.code("\n".join(numbered), language=None)
        for fault in own:
            st.error(in_words(str(fault)), icon=":material/error:")
        begin = line
    rest = [f"{begin + at + 1:3}  {cut(part)}" for at, part in enumerate(lines[begin:])]
    if any(line.strip() for line in lines[begin:]):
        st.code("\n".join(rest[:40]), language=None)


def in_words(text: str) -> str:
    """Return a fault as Markdown: what stands between backticks as code, the rest as it is."""
    return "".join(
        (code(part) if at % 2 else plain(part)) for at, part in enumerate(text.split("`")) if part
    )


def cut(line: str) -> str:
    """Return a line as far as it is shown, without what has no picture."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in line[:LINE])
    return shown + ("..." if len(line) > LINE else "")


def keep_it(text: str) -> None:
    """Offer to keep the equations as a problem."""
    with st.popover("Save as a problem", icon=":material/save:"):
        title = st.text_input("Title", read(text).title, max_chars=80, key=f"title_{hash(text)}")
        if st.button("Save", key="do_keep", disabled=not name_of(title), type="primary"):
            try:
                save(session.runs_root(), title, text)
            except (ValueError, OSError) as error:
                st.error(plain(str(error)))
            else:
                session.put("_equations_kept", title)
                st.rerun()
    title = session.get("_equations_kept")
    if title:
        session.drop("_equations_kept")
        st.toast(f"Kept: {plain(title)} is in the list of problems now.", icon=":material/save:")


def download(text: str, spec: Mapping[str, Any]) -> None:
    """Offer the equations with all settings as a Python file."""
    system = read(text)
    st.download_button(
        "Export as Python",
        export(system, spec),
        f"{(name_of(system.title) or 'equations').replace('-', '_')}.py",
        "text/x-python",
        key="do_export",
        icon=":material/download:",
        on_click="ignore",
        help="A file that runs on its own with the settings on the left and prints the result.",
    )


def kept(problem: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    """Draw kept equations, and what can be done with them."""
    text = str(problem["spec_name"])
    left, right = st.columns(2, gap="medium")
    with left:
        st.code(text.strip(), language=None)
    with right:
        meaning(text)
        with st.container(horizontal=True, gap="small"):
            st.button(
                "Edit",
                icon=":material/edit:",
                key="do_edit",
                on_click=edit,
                args=(text,),
                help="Takes them up as your own equations; what is kept stays until you save.",
            )
            download(text, spec)
            with st.popover("Delete", icon=":material/delete:"):
                st.write("Runs that solved it stay as they are.")
                st.button(
                    "Delete this problem", key="do_forget", on_click=forget, args=(problem["name"],)
                )


def edit(text: str) -> None:
    """Take kept equations up into the field."""
    session.put("equations", text)
    session.put("problem", DRAFT)
    for key, value in starts(describe_text(text)).items():
        session.put(key, value)


def forget(name: str) -> None:
    """Delete kept equations."""
    delete(session.runs_root(), name)
    session.put("problem", DRAFT)
