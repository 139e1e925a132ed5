"""The workbench's server: Streamlit's own, with a door before it and our routes beside its."""
