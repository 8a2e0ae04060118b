"""Data frames to plotly figures: one question a file, pure, without Streamlit."""
