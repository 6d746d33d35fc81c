"""Quality: how often the right runbook is quoted, and how often a wrong one."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from my_agent.chat.documents.chunking import Passage, passages
from my_agent.diagnosis.runbooks import best

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """Words of an incident.

    Attributes:
        set: which cases were known when.
        words: what the incident shows.
        runbook: the document that is about it; None: no document is.
        quoted: the documents that were quoted.
    """

    set: str
    words: str
    runbook: str | None
    quoted: tuple[str, ...]

    @property
    def is_found(self) -> bool:
        """Return whether the runbook was quoted."""
        return self.runbook in self.quoted

    @property
    def is_false(self) -> bool:
        """Return whether another runbook was quoted."""
        return any(each != self.runbook for each in self.quoted)


@cache
def library(only: str = "") -> list[Passage]:
    """Return the passages of all runbooks, or of one."""
    return [
        replace(passage, document_id=path.name, path=path.name)
        for path in sorted((HERE / "documents").glob("runbook*.md"))
        if not only or path.name == only
        for passage in passages(path.name, path.read_bytes())
    ]


def cases(held: list[Passage]) -> Iterator[Case]:
    """Yield each incident with what is quoted of some runbooks."""
    for each in json.loads((HERE / "cases.json").read_text()):
        quoted = tuple(found.document for found in best(each["words"], held))
        yield Case(each["set"], each["words"], each["runbook"], quoted)
