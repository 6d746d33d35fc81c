"""Giving: turn what a person gives into sources of the session, within its limits."""

import hashlib
from collections.abc import Iterable

from my_agent.diagnosis.reading.sources import Given
from my_agent.diagnosis.record import texts
from my_agent.diagnosis.record.events import New, SourceAdded, new
from my_agent.diagnosis.record.fold import SOURCES, State
from my_agent.diagnosis.settings import DiagnosisSettings


class Giving:
    """Collects the events of new sources, their texts, and a sentence for each that is refused.

    Args:
        state: the state of the session.
        settings: the limits.
    """

    def __init__(self, state: State, settings: DiagnosisSettings) -> None:
        self.events: list[New] = []
        self.texts: dict[str, str] = {}
        self.problems: list[str] = []
        self._known, self._settings = set(state["sources"]), settings
        self._used = sum(each["chars"] for each in state["sources"].values())

    def add(self, given: Iterable[Given]) -> None:
        """Add what was given."""
        for each in given:
            problem = self._problem(each)
            if problem:
                self.problems.append(f"The {each.kind} {each.name}".strip() + f" {problem}")
                continue
            self._add(each)

    def _problem(self, given: Given) -> str:
        if source_id(given.name, given.text) in self._known:
            return "is in the record already."
        most = self._settings.max_session_chars
        if self._used + len(given.text) > most or len(self._known) >= SOURCES:
            return (
                f"was not read: a session has at most {SOURCES} sources of {most:,} characters in "
                "all. Begin a new one."
            )
        return ""

    def _add(self, given: Given) -> None:
        name, text = source_id(given.name, given.text), texts.clean(given.text)
        measured = texts.measure([text])
        added = SourceAdded(
            id=name,
            kind=given.kind,
            format=given.format[:40],
            name=texts.clean(given.name)[:200],
            **measured._asdict(),
        )
        self.events.append(new(added))
        self.texts[name] = text
        self._known.add(name)
        self._used += measured.chars


def source_id(name: str, text: str) -> str:
    """Return the id of a source: the same text under the same name is the same source."""
    digest = hashlib.sha256(f"{name}\n".encode("utf-8", "replace"))
    digest.update(texts.clean(text).encode())
    return f"s{digest.hexdigest()[:16]}"
