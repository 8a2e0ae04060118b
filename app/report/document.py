"""The report as one page that needs nothing else: no server, no network, no second file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from app.report import content
from app.report.parts import Figures, Html, digest, tag, text

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from app.theme import Theme
    from inspector.run import Run

HERE = Path(__file__).resolve().parent


def report(run: "Run", solve: int | None = None) -> str:
    """Return a run as an HTML page with its figures, settings and what limits it.

    Args:
        run: an open run; one that still grows is shown as far as it has come.
        solve: the solve to look into; the costliest one if None.

    Raises:
        KeyError: there is no such solve.
    """
    figures = Figures()
    body = content.page(run, solve, figures)
    return _page(content.title(run), body, figures)


def single_page(figure: "go.Figure", title: str, colours: "Theme") -> str:
    """Return one figure as a page of its own, in the colours it was drawn in.

    Args:
        title: what it answers.
        colours: of the figure, for the page around it.
    """
    figures = Figures()
    body = tag("main", figures.add(title, "", title, lambda _: figure, wide=True))
    return _page(title, body, figures, colours)


def _page(title: str, body: Html, figures: Figures, colours: "Theme | None" = None) -> str:
    """Return a page with all it needs in it; what else it would run is forbidden."""
    from plotly.offline import get_plotlyjs

    library, ours = get_plotlyjs(), (HERE / "report.js").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src '{digest(library)}' '{digest(ours)}'; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    style = (HERE / "report.css").read_text("utf-8")
    if colours is not None:
        own = (
            f"color-scheme: {colours.mode}; print-color-adjust: exact; --text: {colours.text}; "
            f"--back: {colours.background}; --muted: {colours.muted};"
        )
        style += f"\n@media all {{ :root {{ {own} }} }}"
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="Stepscope">'
        f"{tag('title', title)}<style>{style}</style>"
    )
    scripts = (
        f'<script type="application/json" id="figures">{figures.json()}</script>'
        f"<script>{library}</script><script>{ours}</script>"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}{scripts}</body></html>\n'
    )


def write_report(
    run: "Run",
    file: str | os.PathLike[str],
    solve: int | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """Write `report` to a file.

    Raises:
        FileExistsError: the file is there, and `overwrite` is False.
        KeyError: there is no such solve.
        OSError: the file cannot be written.
    """
    path = Path(file)
    made = report(run, solve)
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8") as out:
            out.write(made)
    except FileExistsError:
        raise FileExistsError(
            f"file={str(path)!r} is there already; it was left as it is"
        ) from None
    return path
