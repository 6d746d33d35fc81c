"""Snapshots: a project at one moment, for the state file, the backups and `GET .../state`."""

from collections.abc import Mapping

from my_agent.research.model import (
    Analysis,
    CrawledPage,
    LedgerEntry,
    ProjectSnapshot,
    SearchResult,
    from_dict,
)
from my_agent.research.progress import STEPS
from my_agent.research.projects import Key, now
from my_agent.research.state import State
from my_agent.research.text import cut

TITLE = 120


def snapshot(
    state: State, key: Key, read: Mapping[str, CrawledPage], percentage: int
) -> ProjectSnapshot:
    """Return the snapshot of a state.

    Args:
        state: the state.
        key: the project.
        read: its pages, by address.
        percentage: how far it is.
    """
    # The markers of the analysis are those of this ledger; a report numbers its quotes anew.
    citations = state.get("ledger") or []
    analysis = state.get("analysis")
    question = state.get("asked", "")
    return ProjectSnapshot(
        project_id=key.project_id,
        title=cut(question, TITLE),
        status=state.get("status") or "running",
        progress=percentage,
        progress_message=STEPS.get(state.get("stage", "planning"), ""),
        created_at=state.get("created_at") or now(),
        updated_at=now(),
        results=tuple(from_dict(SearchResult, each) for each in state.get("results", [])),
        pages=tuple(read.values()),
        analysis=None if analysis is None else from_dict(Analysis, analysis),
        citations=tuple(from_dict(LedgerEntry, each) for each in citations),
    )
