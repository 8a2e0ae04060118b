"""Buttons that save a picture as the browser has drawn it: SVG, PNG, or a page of its own."""

from functools import cache
from typing import Any

from streamlit.components.v2 import component

from app.components.payload import script

NAME = "stepscope_save_picture"
HTML = '<div class="save" role="group" aria-label="Save the picture"></div>'
CSS = """
.save { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
.save button {
  font: inherit; font-size: 0.95rem; color: var(--st-text-color); cursor: pointer;
  background: transparent; border: 1px solid var(--st-border-color); border-radius: 0.4rem;
  padding: 0.3rem 0.7rem;
}
.save button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.save button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.save span { font-size: 0.85rem; opacity: 0.8; }
"""


def save_picture(picture: str, *, key: str, name: str, title: str, page: bool) -> None:
    """Draw the buttons.

    Args:
        picture: key of the container or component that holds the picture.
        key: identity of the buttons on this page.
        name: of the file, without its ending.
        title: what the picture answers; the title of a page of its own.
        page: offer such a page; the browser draws a picture that cannot be moved in.
    """
    told = {"picture": picture, "name": name, "title": title, "page": page}
    _component()(data=told, key=key, height="content")


@cache
def _component() -> Any:
    return component(NAME, html=HTML, css=CSS, js=script("save_picture"))
