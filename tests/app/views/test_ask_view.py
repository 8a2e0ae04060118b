"""The Ask page: a query, its answer as table and chart, and what is said when it is refused."""

import json

import pytest


@pytest.fixture
def slow_view(open_view):
    """Open the page with time for the process that answers."""

    def opened(**link):
        app = open_view("ask", **link)
        app.default_timeout = 60
        return app

    return opened


def test_the_first_example_is_answered_and_drawn(slow_view):
    app = slow_view(run="whole")
    table = app.dataframe[0].value
    assert list(table.columns) == ["instance", "attempts", "refused"]
    assert table["refused"].is_monotonic_decreasing
    (chart,) = app.get("plotly_chart")
    assert json.loads(chart.proto.spec)["data"]


def test_a_link_asks_its_query_again_and_other_axes_are_drawn(slow_view):
    query = "select attempt, dt, error_ratio from steps where instance = 0 order by attempt"
    app = slow_view(run="whole", sql=query, ask_y="error_ratio", ask_kind="points")
    assert app.text_area(key="sql").value == query
    (chart,) = app.get("plotly_chart")
    figure = json.loads(chart.proto.spec)
    assert figure["layout"]["yaxis"]["title"]["text"] == "error_ratio"
    assert figure["data"][0]["mode"] == "markers"


def test_an_example_is_put_into_the_field(slow_view):
    app = slow_view(run="whole")
    app.selectbox(key="ask_example").set_value("Which columns are there?").run(timeout=60)
    assert app.text_area(key="sql").value == "describe steps"
    assert "column_name" in app.dataframe[0].value


def test_a_refused_query_says_why_and_shows_no_table(slow_view):
    app = slow_view(run="whole", sql="select * from read_text('/etc/passwd')")
    assert "read_text" in app.code[0].value
    assert not app.dataframe
    assert not app.exception


def test_an_answer_without_lines_says_so(slow_view):
    app = slow_view(run="whole", sql="select * from steps where dt > 1e9")
    assert any("no line" in info.value for info in app.info)
