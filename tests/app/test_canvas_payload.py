"""What is sent to the canvas components."""

import json

import numpy as np
import pytest

from app import theme
from app.components import raster
from app.components.payload import pack, script
from app.components.plot import Plot


def unpack(data: bytes):
    """Return head and arrays, as the browser reads them."""
    size = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + size])
    body = data[4 + size :]
    kinds = {"u1": np.uint8, "u2": np.uint16, "f4": np.float32}
    arrays = [np.frombuffer(body, kinds[a["type"]], a["n"], a["at"]) for a in head["arrays"]]
    return head, arrays


def test_arrays_come_back_as_they_were_and_are_aligned():
    sent = [np.arange(3, dtype=np.uint8), np.arange(5, dtype=np.uint16), np.ones(2, np.float32)]
    head, arrays = unpack(pack({"a": 1}, sent))
    assert head["a"] == 1
    assert all(each["at"] % 4 == 0 for each in head["arrays"])
    for one, other in zip(sent, arrays, strict=True):
        assert np.array_equal(one, other)


def test_raster_values_survive_in_log_scale_and_gaps_stay_gaps():
    values = np.geomspace(1e-5, 1.0, 40).reshape(4, 10)
    values[2, 3:] = np.nan
    refused = np.zeros(values.shape, bool)
    refused[1, 1] = refused[2, 9] = True  # the second has no attempt to refuse
    head, (cells, edges, _, _) = unpack(
        raster.encode(values, refused=refused, log=True, label="dt")
    )
    top = 1 << (head["bits"] - 1)
    codes = (cells & (top - 1)).reshape(values.shape)
    back = 10 ** (head["low"] + codes / (top - 2) * (head["high"] - head["low"]))
    there = np.isfinite(values)
    assert np.allclose(back[there], values[there], rtol=1e-3)
    assert (codes[~there] == top - 1).all()
    assert np.flatnonzero(cells & top).tolist() == [11]
    assert edges.tolist() == list(range(11))


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((0, 0)),
        np.zeros((3, 0)),
        np.full((2, 2), np.nan),
        np.ones((1, 1)),
        np.full((2, 2), np.inf),
    ],
)
def test_degenerate_rasters_are_sent(values):
    head, _ = unpack(raster.encode(values, log=True))
    assert head["high"] > head["low"]


def test_large_rasters_stay_within_the_budget():
    values = np.random.default_rng(0).random((256, 480))
    assert len(raster.encode(values, refused=values > 0.9)) < 150_000 + 10_000
    assert unpack(raster.encode(values))[0]["bits"] == 8


def test_codes_beyond_their_labels_do_not_reach_the_browser_as_others():
    labels = [{"label": "a", "color": "#000000"}, {"label": "b", "color": "#ffffff"}]
    head, (cells, *_) = unpack(raster.encode([[0, 1, np.nan]], categories=labels))
    nothing = (1 << (head["bits"] - 1)) - 1
    assert cells.tolist() == [0, 1, nothing]


def test_picked_rows_are_marked_where_they_stand():
    head, _ = unpack(raster.encode(np.ones((3, 2)), rows=[7, 4, 9], picked=[9, 5, 7]))
    assert [p["row"] for p in head["picked"]] == [2, 0]


def test_a_log_chart_ignores_what_has_no_place_on_it():
    plot = Plot("attempt", "|dt|", log_y=True)
    plot.line([0, 1, 2, 3], [1e-3, 0.0, np.nan, 1e-1], "#000000", "line", read="line")
    head, arrays = unpack(plot.encode(height=200, alt="a"))
    low, high = head["y"]["range"]
    assert low == pytest.approx(-3.08)
    assert high == pytest.approx(-0.92)
    assert arrays[0].tolist() == [0, 1, 2, 3]
    assert head["alt"] == "a"


def test_an_empty_chart_has_ends():
    head, _ = unpack(Plot("x", "y").encode(height=100, alt=""))
    assert head["x"]["range"] == [0.0, 1.0]


def test_both_themes_name_the_same_things_and_stay_readable():
    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    def contrast(one: str, other: str) -> float:
        high, low = sorted((luminance(one), luminance(other)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for colours in theme.THEMES.values():
        assert set(colours.limiters) == set(theme.LIGHT.limiters)
        assert contrast(colours.text, colours.background) > 7
        assert contrast(colours.muted, colours.background) > 4.5
        for colour in (
            *colours.highlights,
            colours.accepted,
            colours.refused,
            colours.p,
            colours.i,
        ):
            assert contrast(colour, colours.background) > 3


def test_the_components_reach_for_nothing_outside_and_set_no_html():
    for name in ("raster", "plot"):
        source = script(name)
        for word in (
            "http:",
            "https:",
            "fetch(",
            "XMLHttpRequest",
            "innerHTML",
            "eval(",
            "import ",
        ):
            assert word not in source, word
