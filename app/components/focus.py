"""Gives the focus to the first field of a dialog, so that one may type at once."""

from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component


def first_field(key: str) -> None:
    """Focus the first field of the open dialog; drawn as nothing, inside of it."""
    _component()(key=key, height="content")


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    text = Path(__file__).with_name("focus.js").read_text("utf-8")
    return component("stepscope_focus", html="<span></span>", js=text)
