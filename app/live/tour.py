"""Three steps through the first picture: what you see, the slow row and why, try the change."""

import streamlit as st

from app import remembered, session
from app.live.state import Shown

STEPS = (
    (
        "What you see",
        "This solve was recorded: 16 Van der Pol oscillators, each with its own stiffness, solved "
        "as one batch. In the raster below every **line is a row** of the batch, every **column an "
        "attempt** at a step, and the colour is the step's size. A line ends when its row is done, "
        "so the long lines are what you wait for. Click a line, or walk with the arrow keys.",
        ".st-key-live_raster",
    ),
    (
        "Which row is slow, and why",
        "The sentence above the raster names the **slowest row**, how it compares with the batch, "
        "and what held its steps back. *Look into it* shows all its attempts: where it was "
        "refused, how close to the tolerance, what the controller asked for.",
        ".st-key-verdict",
    ),
    (
        "Try the change",
        "Below the raster stands what would help, with its evidence. **Try it** (or the key T) "
        "solves the same batch with that change and shows what it gained. Then run your own: set "
        "a problem up on the left, or record a script with `Inspector`. K finds any page.",
        ".st-key-diagnosis",
    ),
)


def begin() -> None:
    """Show the tour from its first step, also where it was put away before."""
    session.put("_tour", 0)


def step_now(shown: Shown) -> int | None:
    """Return the step to show; None where there is no tour."""
    held = session.get("_tour")
    if held is not None:
        return held if 0 <= held < len(STEPS) else None
    first = session.is_example(shown.id) and shown.id == next(iter(session.run_ids()), None)
    return 0 if first and not session.read_only() and not remembered.recall("tour") else None


def draw(shown: Shown) -> None:
    """Draw the step, and what moves on from it; nothing where the tour is over."""
    step = step_now(shown)
    if step is None:
        return
    title, text, place = STEPS[step]
    st.html(
        f"<style>{place} {{ outline: 2px solid light-dark(#0b62a4, #56b4e9); outline-offset: 6px; "
        "border-radius: 6px; }</style>"
    )
    with st.container(border=True, key="tour", gap="xsmall"):
        st.markdown(f"**{step + 1} of {len(STEPS)}: {title}**")
        st.markdown(text)
        with st.container(horizontal=True, gap="small"):
            last = step == len(STEPS) - 1
            st.button(
                "Done" if last else "Next",
                type="primary",
                key="tour_next",
                shortcut="N",
                on_click=go,
                args=(step + 1,),
            )
            if step:
                st.button("Back", key="tour_back", shortcut="P", on_click=go, args=(step - 1,))
            if not last:
                st.button("Skip the tour", key="tour_skip", type="tertiary", shortcut="X",
                          on_click=go, args=(len(STEPS),))  # fmt: skip


def go(step: int) -> None:
    """Go to a step; past the last one the tour is over, also for later visits."""
    session.put("_tour", step)
    if step >= len(STEPS):
        remembered.remember(tour="done")
