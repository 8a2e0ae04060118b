"""The layer that draws figures: question, alt text, data on demand, equal figures side by side."""

import json

from streamlit.testing.v1 import AppTest


def two_equal_charts() -> None:
    import pandas as pd
    import plotly.graph_objects as go

    from app.components.chart import draw

    table = pd.DataFrame({"t": [0.0, 1.0], "y": [1.0, 2.0]})
    for key in ("one", "two"):
        draw(
            go.Figure(go.Scatter(x=table["t"], y=table["y"])),
            key=key,
            question="Is $this$ *one* [value]?",
            unit="time",
            alt="Two points.",
            data=lambda: table,
        )


def test_the_same_figure_twice_is_drawn_twice():
    app = AppTest.from_function(two_equal_charts).run()
    assert not app.exception
    charts = app.get("plotly_chart")
    assert len(charts) == 2
    assert charts[0].proto.spec == charts[1].proto.spec
    assert len({chart.proto.id for chart in charts}) == 2
    assert json.loads(charts[0].proto.spec)["data"]
    assert charts[0].proto.alt == "Two points."


def test_a_question_is_text_and_no_markup():
    app = AppTest.from_function(two_equal_charts).run()
    heading = app.markdown[0].value
    assert "\\$this\\$" in heading
    assert "\\*one\\*" in heading
    assert "\\[value\\]" in heading


def test_the_table_is_made_only_when_it_is_asked_for():
    app = AppTest.from_function(two_equal_charts).run()
    assert not app.dataframe
    app.session_state["data_one"] = True
    app.run()
    assert len(app.dataframe) == 1
    assert app.dataframe[0].value["y"].tolist() == [1.0, 2.0]


def test_a_name_cannot_end_its_code_span():
    from app.components.chart import code

    assert code("a`b` <b>") == "`a'b' <b>`"
