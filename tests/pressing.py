"""What a test does to a page and reads off it, without a browser."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest

MARKUP = "![x](https://evil.example/a.png) <b>bold</b> **strong** $x$ :red[colour]"


def press(at: AppTest, label: str) -> AppTest:
    """Press the button of a label, and look that the page still runs."""
    at = next(button for button in at.button if button.label == label).click().run()
    assert not at.exception
    return at


def segment(at: AppTest, key: str, value: Any) -> AppTest:
    """Choose one of a few, and look that the page still runs."""
    at.session_state[key] = value
    at.run()
    assert not at.exception
    return at


def told(at: AppTest) -> list[str]:
    """Return what is shown plain."""
    return [code.value for code in at.code]


def everything_interpreted(at: AppTest) -> str:
    """Return all that was given to widgets which read Markdown, labels and tooltips included."""
    read = [*at.markdown, *at.caption, *at.info, *at.warning, *at.error, *at.success, *at.title, *at.subheader]
    labelled = [
        *at.button,
        *at.text_input,
        *at.text_area,
        *at.number_input,
        *at.date_input,
        *at.selectbox,
        *at.radio,
        *at.metric,
        *at.checkbox,
        *at.expander,
        *at.tabs,
    ]
    labels = [f"{widget.label} {getattr(widget, 'help', '')}" for widget in labelled]
    choices = [*at.selectbox, *at.multiselect, *at.radio, *at.button_group]
    options = [str(getattr(widget, "options", "")) for widget in choices]
    return "\n".join([*(str(widget.value) for widget in read), *labels, *options, str(at.query_params)])
