"""Feedback: what users say about candidates. It is kept for each tenant, rule and company.

It outlives searches: a rejected company stays rejected if a later search finds it again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import delete, select

from my_agent.companies.texts import words
from my_agent.icp_finder.model import Scored
from my_agent.icp_finder.records.store import now
from my_agent.icp_finder.records.tables import feedback
from my_agent.tables import rows, run, upsert

Verdict = Literal["rejected", "kept", "liked"]

MAX_REASON = 500
# What feedback adds to a score from 0 to 1.
KEPT = 0.3
ALIKE = 0.25
# Share of common words at which two companies count as fully alike.
FULL_LIKENESS = 0.4
# Words that almost every description has.
_COMMON = frozenset(
    ["company", "companies", "limited", "private", "singapore", "services", "service", "business"]
)


@dataclass(frozen=True)
class Feedback:
    """What the users of a tenant said about one company under one rule."""

    verdict: Verdict  # `rejected`: not shown; `kept`: shown first; `liked`: others like it rise
    name: str
    reason: str  # in the user's words; empty if not said
    about: str  # what the company does, to compare others with
    at: datetime


async def feedback_of(tenant_id: str, rule_name: str) -> dict[str, Feedback]:
    """Return the feedback under a rule, by the key of the candidate (`uen:...`, `domain:...`)."""
    ask = select(feedback).filter_by(tenant_id=tenant_id, rule_name=rule_name)
    return {
        row.key: Feedback(row.verdict, row.name, row.reason, row.about, row.updated_at)
        for row in await rows(ask, tenant_id)
    }


async def save(
    tenant_id: str, rule_name: str, verdict: Verdict, of: Sequence[Scored], reason: str = ""
) -> None:
    """Store feedback on candidates, with its reason. It replaces earlier feedback on them."""
    said = {"verdict": verdict, "reason": reason[:MAX_REASON], "updated_at": now()}
    new = [
        {**said, "tenant_id": tenant_id, "rule_name": rule_name, "key": each.key}
        | {"name": each.name, "about": each.text}
        for each in (scored.candidate for scored in of)
    ]
    await run(lambda to: upsert(to, feedback, new), tenant_id, write=True)


async def forget(tenant_id: str, rule_name: str, keys: Sequence[str]) -> None:
    """Delete the feedback on candidates."""
    of_rule = delete(feedback).filter_by(tenant_id=tenant_id, rule_name=rule_name)
    gone = of_rule.where(feedback.c.key.in_(keys))
    await run(lambda connection: connection.execute(gone), tenant_id, write=True)


def weights(said: Mapping[str, Feedback]) -> dict[str, float]:
    """Return feedback as numbers, for scores: -1 for a rejected company, 1 for a kept one. Pure."""
    return {key: -1.0 if each.verdict == "rejected" else 1.0 for key, each in said.items()}


def ranked(found: Sequence[Scored], said: Mapping[str, Feedback]) -> list[Scored]:
    """Return candidates without the rejected ones, in the order that the feedback gives. Pure.

    Kept candidates rise, and so do candidates that resemble a liked one. Ties keep their order.
    """
    liked = [_content(each.about) for each in said.values() if each.verdict == "liked"]

    def rank(scored: Scored) -> float:
        kept = KEPT if scored.candidate.key in said else 0.0
        own = _content(scored.candidate.text) if liked else frozenset()
        alike = max((_alike(own, each) for each in liked), default=0.0)
        return -(scored.score.total + (kept + ALIKE * alike))

    rejected = {key for key, each in said.items() if each.verdict == "rejected"}
    shown = [each for each in found if each.candidate.key not in rejected]
    return sorted(shown, key=rank) if said else shown


def likeness(one: Scored, other: Scored) -> float:
    """Return how alike two candidates are, from 0 to 1: by their words and industry codes. Pure."""
    same_code = bool(set(one.candidate.ssic[:1]) & set(other.candidate.ssic[:1]))
    texts = _content(one.candidate.text), _content(other.candidate.text)
    return max(_alike(*texts), 0.8 if same_code else 0.0)


def _content(text: str) -> frozenset[str]:
    return frozenset(words(text)) - _COMMON


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    least = min(len(one), len(other))
    return min(1.0, len(one & other) / least / FULL_LIKENESS) if least else 0.0
