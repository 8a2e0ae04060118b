"""What a report is made of, as HTML: every text is escaped here and nowhere else."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from app.theme import THEMES, Theme

POOLED = 200  # characters of an array from which on it is written once for both themes


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return anything as text of a page, in which it can be no markup."""
    return value if isinstance(value, Html) else Html(escape(str(value), quote=True))


def tag(name: str, *inside: object, **attributes: object) -> Html:
    """Return an element; `class_` gives its class, `aria_label` its label."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{told}>{''.join(map(text, inside))}</{name}>")


def joined(*parts: object) -> Html:
    """Return parts one behind the other."""
    return Html("".join(map(text, parts)))


def section(title: str, *inside: object) -> Html:
    """Return a part of the report with its heading; nothing if it is empty."""
    body = joined(*inside)
    return tag("section", tag("h2", title), body) if body else Html("")


def code(value: str) -> Html:
    """Return a block of code."""
    return tag("pre", tag("code", value))


def marked(sentence: str) -> Html:
    """Return a sentence in which backticks set code apart."""
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return text(sentence)
    return joined(*(tag("code", part) if i % 2 else part for i, part in enumerate(parts)))


def table(
    head: Sequence[str], lines: Iterable[Sequence[object]], *, caption: str | None = None
) -> Html:
    """Return a table; numbers are aligned at the right."""
    rows = [tag("tr", *(tag("td", cell, class_=_kind(cell)) for cell in line)) for line in lines]
    if not rows:
        return Html("")
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption) if caption else "",
            tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))),
            tag("tbody", *rows),
        ),
        class_="table",
        tabindex="0",
        role="region",
        aria_label=caption or ", ".join(head[:3]),
    )


def _kind(cell: object) -> str | None:
    shown = str(cell).replace("\u202f", "").replace(",", "")
    try:
        float(shown.rstrip(" %\u00d7"))
    except ValueError:
        return None
    return "number"


def frame(found: pd.DataFrame, most: int, *, caption: str) -> Html:
    """Return the first lines of a data frame as a table that says how many there are."""
    from app.controls.numbers import short

    def shown(value: Any) -> object:
        plain = value.item() if hasattr(value, "item") else value
        return "" if plain is None or plain != plain else short(plain)

    lines = [[shown(value) for value in line] for line in found.head(most).itertuples(index=False)]
    more = f" (the first {most:,} of {len(found):,})" if len(found) > most else ""
    return table([str(name) for name in found.columns], lines, caption=caption + more)


def facts(values: Mapping[str, object]) -> Html:
    """Return names with their values, side by side."""
    cells = (tag("div", tag("dt", name), tag("dd", value)) for name, value in values.items())
    return tag("dl", *cells, class_="tiles")


class Figures:
    """The figures of a report, in both themes; what these share is written once."""

    def __init__(self) -> None:
        self._drawn: list[dict[str, Any]] = []
        self._pool: list[Any] = []
        self._places: dict[str, int] = {}

    def add(
        self,
        question: str,
        unit: str,
        alt: str,
        make: Callable[[Theme], go.Figure],
        *,
        wide: bool = False,
    ) -> Html:
        """Draw a figure in both themes and return its place in the page; none if it is empty."""
        number = len(self._drawn)
        if not make(THEMES["light"]).data:
            return Html("")
        drawn = {mode: self._shared(_plain(make(colours))) for mode, colours in THEMES.items()}
        self._drawn.append(drawn | {"name": _file_name(question)})
        height = _height(drawn)
        return tag(
            "figure",
            tag("figcaption", tag("h3", question), tag("span", unit, class_="unit")),
            tag(
                "div", "", class_="chart", id=f"figure-{number}", role="img", aria_label=alt,
                style=f"height:{height}px",
            ),
            class_="wide" if wide else None,
        )  # fmt: skip

    def json(self) -> str:
        """Return all figures as JSON that can stand in a page."""
        told = json.dumps({"pool": self._pool, "figures": self._drawn}, separators=(",", ":"))
        return told.replace("<", "\\u003c")

    def _shared(self, value: Any) -> Any:
        """Return a value in which arrays are places in the pool."""
        if isinstance(value, dict) and "bdata" in value:
            return self._pooled(value)
        if isinstance(value, dict):
            return {key: self._shared(item) for key, item in value.items()}
        if isinstance(value, list):
            told = json.dumps(value)
            return self._pooled(value) if len(told) > POOLED else [self._shared(i) for i in value]
        return value

    def _pooled(self, value: Any) -> dict[str, int]:
        key = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        if key not in self._places:
            self._places[key] = len(self._pool)
            self._pool.append(value)
        return {"$pool": self._places[key]}


def _height(drawn: Mapping[str, Any]) -> int:
    """Return the height of a figure, so that its place is there before it is drawn."""
    return int(drawn["light"]["layout"].get("height") or 260)


def _plain(figure: go.Figure) -> dict[str, Any]:
    """Return a figure as plain JSON values; one without a template of its own needs none."""
    found: dict[str, Any] = json.loads(figure.to_json() or "{}")
    return {"data": found.get("data", []), "layout": found.get("layout", {})}


def _file_name(question: str) -> str:
    """Return what a figure is called when it is saved."""
    kept = "".join(c if c.isalnum() and c.isascii() else "-" for c in question.lower())
    return "-".join(filter(None, kept.split("-")))[:60] or "figure"


def digest(script: str) -> str:
    """Return how a content security policy names a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
