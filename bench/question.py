"""A question with a known answer."""

from dataclasses import dataclass

from my_agent.chat.documents.chunking import Passage


@dataclass(frozen=True)
class Question:
    """What is asked, and what is known of the passage that answers it.

    Attributes:
        answer: words that only this passage has.
        title: of its document.
        section: that it is in.
    """

    question: str
    answer: str = ""
    title: str = ""
    section: str = ""

    def is_answered_by(self, passage: Passage) -> bool:
        """Whether this is the passage; what is empty says nothing."""
        return (
            self.answer in passage.text
            and self.title in ("", passage.title)
            and self.section in ("", passage.section)
        )
