"""Takes the settings of a recorded run up into the widgets, for a link that says `?again=<run>`.

With `&setting=<label>` it is those of one entry of the run's study: gains found by the Tuner.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app import remembered, session
from app.controls.spec import Described, put_spec
from app.live.state import title_of

if TYPE_CHECKING:
    from inspector.run import Run


def take_up(described: Described) -> None:
    """Set the widgets to what a link asks to run again; call it before they are drawn.

    A link is taken up once, so that what is changed afterwards stays.
    """
    last = remembered.last_spec()
    asked = session.param("again")
    label = session.param("setting")
    if last and not asked:
        put_where_known(last, described)
    if not asked or session.get("_taken_up") == (asked, label):
        return
    session.put("_taken_up", (asked, label))
    session.put_param("again", None)
    session.put_param("setting", None)
    run = session.open_run(asked)
    spec = run.spec if run is not None else None
    if run is not None and spec and label:
        spec = {**spec, **setting_of(run, label)}
    if spec:
        put_where_known(spec, described)


def put_where_known(spec: Mapping[str, Any], described: Described) -> None:
    """Set the widgets to a spec, unless its problem is not there any more."""
    problem = title_of(dict(spec), dict(described))
    if problem:
        session.put("problem", problem["name"])
        put_spec(problem, spec)


def setting_of(run: "Run", label: str) -> dict[str, Any]:
    """Return method, tolerances and controller of an entry of a run's study; empty without it."""
    from inspector.studies import Study

    for entry in Study(run.path).entries():
        if entry.get("label") == label and entry.get("controller"):
            kept = ("method", "rtol", "atol", "controller")
            return {name: entry[name] for name in kept if entry.get(name) is not None}
    return {}
