"""The Instances page: it names what dominated a row, and every way to pick a row works."""

import json

import pytest


def sentence(app) -> str:
    return next(m.value for m in app.markdown if m.value.startswith("**Row "))


def row(app) -> int:
    return int(app.number_input(key="inst").value)


def press(app, name: str):
    app.button(key=f"go_{name}").click().run()
    assert not app.exception
    return app


def test_it_opens_on_the_worst_row_and_says_why_it_is_slow(open_view):
    app = open_view("instances", run="failed-rows")
    table = next(d.value for d in app.dataframe if "refused" in d.value)
    assert row(app) == table["row"].iloc[0]
    said = sentence(app)
    assert f"Row {row(app)} (mu = " in said
    assert "the batch median" in said
    assert "limited by accuracy" in said


def test_a_link_opens_its_row(open_view):
    app = open_view("instances", run="whole", inst=7)
    assert row(app) == 7
    assert sentence(app).startswith("**Row 7 ")


@pytest.mark.parametrize(("asked", "shown"), [("99", 11), ("-3", 0), ("seven", None)])
def test_a_wrong_row_in_the_link_shows_the_nearest(open_view, asked, shown):
    app = open_view("instances", run="whole", inst=asked)
    worst = next(d.value for d in app.dataframe if "refused" in d.value)["row"].iloc[0]
    assert row(app) == (worst if shown is None else shown)


def test_previous_next_worst_and_next_worst_walk_the_batch(open_view):
    app = open_view("instances", run="failed-rows", inst=3)
    ranked = next(d.value for d in app.dataframe if "refused" in d.value)["row"].tolist()
    assert row(press(app, "Next")) == 4
    assert row(press(app, "Previous")) == 3
    assert row(press(app, "Worst")) == ranked[0]
    assert row(press(app, "Next worst")) == ranked[1]


def test_there_is_no_row_before_the_first(open_view):
    app = open_view("instances", run="whole", inst=0)
    assert app.button(key="go_Previous").disabled
    assert not app.button(key="go_Next").disabled


def test_a_failed_row_says_how_it_ended(open_view):
    app = open_view("instances", run="failed-rows", inst=1)
    assert "met values that are not finite and ended at t = 10" in sentence(app)


def test_all_pictures_share_the_x_axis(open_view):
    app = open_view("instances", run="whole", inst=2)
    specs = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    timed = [
        spec["layout"] for spec in specs if spec["layout"]["xaxis"]["title"]["text"] == "time t"
    ]
    assert len(timed) >= 5
    assert len({tuple(layout["xaxis"]["range"]) for layout in timed}) == 1


def test_fewer_attempts_can_be_shown_and_another_row_shows_all_again(open_view):
    app = open_view("instances", run="whole", inst=2)
    app.slider(key="window").set_value((10, 30)).run()
    first = json.loads(app.get("plotly_chart")[1].proto.spec)
    drawn = [trace for trace in first["data"] if trace["name"].startswith(("accepted", "refused"))]
    assert sum(int(trace["name"].split("(")[1].split(")")[0]) for trace in drawn) == 21
    press(app, "Next")
    low, high = app.slider(key="window").value
    assert (low, high) == (0, 119)


def test_the_axis_may_be_attempts(open_view):
    app = open_view("instances", run="whole", inst=2, xaxis="attempt")
    titles = [
        json.loads(c.proto.spec)["layout"]["xaxis"]["title"]["text"]
        for c in app.get("plotly_chart")
    ]
    assert titles.count("attempt number") >= 5


def test_a_run_without_statistics_shows_what_it_has(open_view):
    app = open_view("instances", run="bare")
    assert "limiting_component" in app.info[0].value
    assert "took" in sentence(app)


def test_a_single_row_is_compared_with_nobody(open_view):
    app = open_view("instances", run="single")
    assert "median" not in sentence(app)
    assert all(not tile.delta for tile in app.metric)


def test_states_are_drawn_where_they_were_recorded(open_view):
    kept = open_view("instances", run="whole", inst=0)
    assert any("solution doing" in m.value for m in kept.markdown)
    without = open_view("instances", run="failed-rows", inst=0)
    assert any("not recorded" in c.value for c in without.caption)
