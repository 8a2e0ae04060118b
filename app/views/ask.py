"""Ask: a question to the run in SQL, its answer as a table and a chart."""

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import session, theme
from app.components.chart import code, draw, files_of
from app.components.run_header import nothing_stored
from app.controls.spec import choose
from app.figures.answer import KINDS, answer_figure, numeric
from inspector.ask import MOST_ROWS, SECONDS, TABLES, Answer, RefusedQuery, ask

if TYPE_CHECKING:
    from inspector.run import Run

EXAMPLES = {
    "Which rows were refused most?": "select instance, count(*) as attempts,\n"
    "       count(*) filter (where accepted = 0) as refused\n"
    "from steps\ngroup by instance\norder by refused desc",
    "How large were the steps, by time?": "select floor(t * 10) / 10 as t,\n"
    "       median(dt) as median_dt, min(dt) as smallest\nfrom steps\nwhere accepted = 1\n"
    "group by 1\norder by 1",
    "How close to the tolerance?": "select round(log10(greatest(error_ratio, 1e-6)), 1) as "
    "log10_error_ratio,\n       count(*) as attempts\nfrom steps\ngroup by 1\norder by 1",
    "What did each solve take?": "select solve, method, controller, rtol, n_steps, n_rejected,"
    "\n       n_f_evals, seconds\nfrom solve_table\norder by solve",
    "How did the numbers of a training go?": "select iteration, name, value\nfrom scalars\n"
    "order by iteration",
    "Which columns are there?": "describe steps",
}


def page() -> None:
    """Draw the query, and what it gives."""
    st.title("Ask a run", anchor=False)
    current = session.current_run()
    run = session.open_run(current)
    if current is None or run is None:
        nothing_stored()
        return
    st.caption(f"A query in SQL over the tables of {code(current)}: one SELECT, read-only.")
    query = question()
    if not query.strip():
        st.info("Write a query, or choose an example.", icon=":material/database:")
        return
    try:
        with st.spinner("Asking...", show_time=True):
            found = asked(str(run.path), run.version, query)
    except RefusedQuery as problem:
        st.error("The query was not answered:", icon=":material/block:")
        st.code(str(problem), language=None)
        return
    show(run, found)


@st.cache_data(max_entries=24, ttl=600.0, show_spinner=False)
def asked(path: str, version: int, query: str) -> Answer:
    """Ask a run, once for each state of it."""
    return ask(path, query)


def question() -> str:
    """Draw the field of the query with examples and tables; return the query."""
    chosen = st.selectbox(
        "Example",
        list(EXAMPLES),
        index=None,
        placeholder="choose a question",
        key="ask_example",
        on_change=take_example,
        width=420,
    )
    if session.get("sql") is None and session.param("sql") is None:
        session.put("sql", EXAMPLES[chosen or next(iter(EXAMPLES))])
    query = st.text_area(
        "Query",
        height=150,
        max_chars=20_000,
        help="Ctrl+Enter asks. The link in the address bar asks the same again.",
        **session.keep("sql", "url"),
    )
    with st.expander("Tables", icon=":material/table:"):
        for name, text in TABLES.items():
            st.markdown(f"- {code(name)}: {text}")
        st.caption(
            f"At most {MOST_ROWS:,} lines and {SECONDS:g} s. A query runs in a process of its own "
            "that may open no file and no connection; `describe steps` lists columns."
        )
    return str(query or "")


def take_example() -> None:
    """Put an example into the field."""
    chosen = session.get("ask_example")
    if chosen in EXAMPLES:
        session.put("sql", EXAMPLES[chosen])


def show(run: "Run", found: Answer) -> None:
    """Draw an answer as a table and, if it has numbers, as a chart."""
    table = found.table
    more = f", the first {len(table):,}" if found.more else ""
    st.caption(f"{len(table):,} lines{more}, {found.seconds:.2f} s.")
    if table.empty:
        st.info("The answer has no line.", icon=":material/filter_alt_off:")
        return
    st.dataframe(table, hide_index=True, key="ask_answer", height=min(38 + 35 * len(table), 330),
                 alt="Answer to the query.")  # fmt: skip
    files_of(table, "ask", f"{run.id}-answer")
    chart(table)


def chart(table: pd.DataFrame) -> None:
    """Draw the pickers of a chart, and the chart."""
    every = [str(name) for name in table.columns]
    if len(set(every)) < len(every):
        return  # two columns of one name cannot be told apart
    figures = [name for name in every if numeric(table[name])]
    if not figures or len(table) < 2:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        x = choose("Across", "ask_x", {n: n for n in every}, every[0], width=200)
        up = {n: n for n in figures}
        y = choose("Up", "ask_y", up, next((n for n in figures if n != x), figures[0]), width=200)
        start = "line" if numeric(table[x]) and table[x].is_monotonic_increasing else "points"
        kind = choose("As", "ask_kind", KINDS, start if numeric(table[x]) else "bars", width=140)
        groups = {"": "one colour"} | {n: n for n in every if n not in (x, y)}
        group = choose("Colour by", "ask_group", groups, "", width=200)
    draw(
        answer_figure(table, theme.current(), x=x, y=y, kind=kind, group=group),
        key="ask_chart",
        question=f"{y} over {x}",
        unit="",
        alt=f"{y} over {x}, {len(table)} values.",
        data=table,
    )


page()
