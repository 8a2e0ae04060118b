"""Takes the settings of a recorded run up into the widgets, for a link that says `?again=<run>`."""

from app import session
from app.controls.spec import Described, put_spec


def take_up(described: Described) -> None:
    """Set the widgets to what a link asks to run again; call it before they are drawn.

    A link is taken up once, so that what is changed afterwards stays.
    """
    asked = session.param("again")
    if not asked or session.get("_taken_up") == asked:
        return
    session.put("_taken_up", asked)
    session.put_param("again", None)
    run = session.open_run(asked)
    spec = run.spec if run is not None else None
    problem = next(
        (p for p in described["problems"] if spec and p["name"] == spec.get("problem")), None
    )
    if spec and problem:
        session.put("problem", problem["name"])
        put_spec(problem, spec)
