"""Replies to questions with buttons, as texts of messages."""

from typing import Any

import pytest

from my_agent.understanding.replies import spoken

OPTIONS = {"enrich": "Read them", "later": "Not now"}


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ({"choice": "enrich", "question": "q"}, "Read them"),
        # A page in another language sends the label that it has shown.
        ({"choice": "later", "question": "q", "label": "Agora não"}, "Agora não"),
        # What is no press keeps its words, whatever it claims to be.
        ({"choice": "keep 1", "label": "Not now"}, "keep 1"),
        ("enrich", "enrich"),
        (True, "Yes"),
    ],
)
def test_a_press_says_the_label_of_its_button(reply: Any, text: str) -> None:
    assert spoken(OPTIONS, reply) == text
