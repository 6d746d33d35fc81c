"""A question with a known answer."""

from dataclasses import dataclass

from my_agent.chat.documents.chunking import Passage


@dataclass(frozen=True)
class Question:
    """A question and the properties of the passage that answers it.

    Attributes:
        question: the text.
        answer: words that only this passage contains.
        title: title of its document.
        section: section of the passage.
    """

    question: str
    answer: str = ""
    title: str = ""
    section: str = ""

    def is_answered_by(self, passage: Passage) -> bool:
        """Return whether this passage is the answer. Empty attributes match everything."""
        return (
            self.answer in passage.text
            and self.title in ("", passage.title)
            and self.section in ("", passage.section)
        )
