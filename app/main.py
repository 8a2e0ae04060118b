"""The dashboard's entry. Start it with `streamlit run app/main.py`."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:  # `streamlit run` puts only this folder on the path
    sys.path.insert(0, str(HERE.parent))

import streamlit as st  # noqa: E402

from app import frame  # noqa: E402

st.set_page_config(
    page_title="Stepscope",
    page_icon=str(HERE / "icon.png"),
    layout="wide",
    initial_sidebar_state=330,
)
page = st.navigation(frame.pages(), position="top")
frame.draw(page)
page.run()
