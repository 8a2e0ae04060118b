"""A link reopens a view as it stands: whatever is set is in the address, and comes back from it."""

from collections.abc import Callable
from typing import Any

import pytest

from app.frame import VIEWS

KINDS = (
    *("selectbox", "slider", "select_slider", "number_input", "toggle", "checkbox", "multiselect"),
    *("text_input", "text_area", "button_group", "radio"),
)
ACT_ONCE = ("ask_example", "row_number", "note_")  # they do something and are empty again
RESHAPE = (
    "problem",
    "method",
    "sweep",
    "controller",
    "preset_",
    "run",
    "sql",
    "find",
    "cmp_find",
    "ask_x",
    "ask_y",
)
"""Begin of the keys, behind a prefix, whose values decide which other widgets there are."""
VIEW_NAMES = [name for name, *_ in VIEWS]
START = {"run": {"run": "whole"}, "training": {"run": "many"}}

Told = tuple[Any, Callable[[Any], bool]]


def widgets(app: Any) -> dict[str, Any]:
    """Return what can be set on a page, by key."""
    found = [element for kind in KINDS for element in app.get(kind)]
    return {str(w.key): w for w in found if w.key and not str(w.key).startswith(ACT_ONCE)}


def another(widget: Any) -> Told | None:
    """Return how a link writes a value that a widget does not have, and what tells that it has it.

    A link holds numbers as such and options as they are shown, several of them one by one.
    """
    kind, value = widget.type, widget.value
    if kind in ("toggle", "checkbox"):
        return str(not value).lower(), lambda w: w.value == (not value)
    if kind in ("text_input", "text_area"):
        return "e", lambda w: w.value == "e"
    if kind in ("slider", "number_input"):
        return moved(widget, value)
    options = list(widget.options)
    if kind == "button_group":
        if len(options) < 2:
            return None
        shown = widget.proto.options[1]
        link = f"{shown.content_icon} {shown.content}".strip()
        return [link], lambda w: list(w.formatted_values) == [link]
    if kind == "multiselect":
        if not options:
            return None
        told = options[-1] if list(widget.indices) != [len(options) - 1] else options[0]
        return [told], lambda w: [w.options[i] for i in w.indices] == [told]
    if kind == "select_slider":
        if isinstance(value, tuple | list):
            ends = [options[0], options[-2]]
            return ends, lambda w: [w.format_func(end) for end in w.value] == ends
        told = options[1] if widget.format_func(value) != options[1] else options[0]
        return told, lambda w: w.format_func(w.value) == told
    others = [index for index in range(len(options)) if index != widget.index]
    return (options[others[-1]], lambda w: w.index == others[-1]) if others else None


def moved(widget: Any, value: Any) -> Told | None:
    """Return a value one step up or down."""
    step = widget.step or 1
    if isinstance(value, tuple | list):
        ends = (value[0], value[1] - step)
        fits = ends[1] > ends[0]
        return ([str(end) for end in ends], lambda w: tuple(w.value) == ends) if fits else None
    low = float("-inf") if widget.min is None else widget.min
    high = float("inf") if widget.max is None else widget.max
    tried = [low] if value is None else [value + step, value - step]
    fits = [other for other in tried if low <= other <= high and abs(other) != float("inf")]
    return (str(fits[0]), lambda w: w.value == fits[0]) if fits else None


def reshapes(key: str) -> bool:
    """Whether other widgets depend on this one."""
    return any(part.startswith(RESHAPE) for part in (key, key.rpartition(".")[2]))


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_everything_that_can_be_set_has_a_place_in_the_address(open_view, view):
    found = widgets(open_view(view, **START.get(view, {"run": "whole"})))
    assert found
    assert not [key for key, widget in found.items() if widget.proto.query_param_key != key]


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_a_link_brings_back_what_was_set(open_view, view):
    start = START.get(view, {"run": "whole"})
    found = widgets(open_view(view, **start))
    told = {
        key: other
        for key, widget in found.items()
        if not reshapes(key) and not widget.disabled and (other := another(widget)) is not None
    }
    link = {key: text for key, (text, _) in told.items()}
    back = widgets(open_view(view, **(link | start)))
    lost = [(k, link[k], back[k].value) for k in told if k in back and not told[k][1](back[k])]
    assert not lost
    assert len(back.keys() & told.keys()) >= 0.8 * len(told)


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_a_link_brings_back_what_decides_the_others(open_view, view):
    start = START.get(view, {"run": "whole"})
    for key, widget in widgets(open_view(view, **start)).items():
        told = another(widget) if reshapes(key) and not widget.disabled else None
        if told is not None:
            back = widgets(open_view(view, **(start | {key: told[0]}))).get(key)
            assert back is not None, key
            assert told[1](back), key


def test_rows_picked_together_are_linked_together(open_view):
    app = open_view("live", run="whole", rows="3,7,1", inst="1")
    assert app.session_state["picked"] == [3, 7, 1]
    app.number_input(key="row_number").set_value(5).run()
    assert app.query_params["rows"] in ("3,7,1,5", ["3,7,1,5"])
    app.button(key="pick_none").click().run()
    assert "rows" not in app.query_params
    assert open_view("live", run="whole", rows="x,,999999999999,-4,2").session_state["picked"] == [
        2
    ]


def test_a_line_picked_in_a_table_is_named_by_the_link(open_view):
    app = open_view("run", run="failed-rows", failed=4)
    assert any("row 4" in link.label for link in app.get("page_link"))
    assert any(
        "row 1" in link.label for link in open_view("run", run="failed-rows").get("page_link")
    )


@pytest.mark.parametrize(
    "run",
    [
        *("..", ".", "../whole", "whole/../single", "/etc", "/etc/passwd", "\\\\server\\x"),
        *("%2e%2e", "%2e%2e%2fwhole", "..%2fwhole", "whole\0", "\0", "whole\n", "x" * 5_000),
        *("\u202ewhole", "wh\u043ele", "\ud7ff", "whole ", "WHOLE", "steps", "run.json", "*", "?"),
        *("<script>alert(1)</script>", "`whole`", "[x](javascript:alert(1))", "elsewhere"),
    ],
    ids=ascii,
)  # fmt: skip
def test_a_hostile_run_in_a_link_opens_nothing(open_view, own_runs, tmp_path, run):
    (tmp_path / "outside").mkdir()
    (own_runs / "first").rename(tmp_path / "outside" / "first")
    (own_runs / "elsewhere").symlink_to(tmp_path / "outside" / "first")
    for view in ("run", "live", "runs"):
        app = open_view(view, own_runs, run=run)
        assert app.selectbox(key="run").value == "", view
        assert any("There is no run" in warning.value for warning in app.warning), view
        assert "elsewhere" not in app.selectbox(key="run").options
