"""Compare: which setting is better, and where?"""

import streamlit as st

from app import session
from app.components.run_header import nothing_stored
from app.explore import compared

st.title("Compare", anchor=False)
st.caption("Which setting is better, and where? The run shown is the baseline.")


def page() -> None:
    """Draw the pickers, and what there is to compare."""
    baseline = session.current_run()
    if baseline is None:
        nothing_stored()
        return
    others = compared.pick(baseline)
    compared.groups(baseline)
    opened = {name: session.open_run(name) for name in [baseline, *others]}
    runs = {name: run for name, run in opened.items() if run is not None and run.n_solves}
    missing = [name for name in opened if name not in runs]
    if missing:
        st.info(f"No solve yet in {', '.join(missing)}.", icon=":material/hourglass_empty:")
    if not others:
        compared.nothing(baseline)
        return
    if baseline not in runs or len(runs) < 2:
        return
    most = min(run.n_solves for run in runs.values())
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = [name for name in runs if name != baseline]
        session.check("focus", lambda held: held in names, names[0])
        focus = st.selectbox(
            "In detail", names, width=320, help="Drawn beside the baseline, row by row.",
            **session.keep("focus", "url"),
        )  # fmt: skip
        solve = 0
        if most > 1:
            session.check("cmp_solve", lambda held: 0 <= (held or 0) < most, 0)
            solve = int(
                st.number_input(
                    f"Solve (0 to {most - 1})", 0, most - 1, 0, width=160,
                    **session.keep("cmp_solve", "url"),
                )
            )  # fmt: skip
    focus = str(focus or names[0])
    table = compared.numbers(runs, solve)
    compared.tiles(table, focus)
    compared.settings(runs, solve)
    compared.trainings(runs)
    compared.pictures(runs, focus, solve)
    compared.paths(runs, solve)


page()
