"""Feedback: what users say about candidates. It is kept for each tenant, rule and company.

It outlives searches: a rejected company stays rejected if a later search finds it again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, delete, select

from my_agent.icp_finder.model import Scored
from my_agent.icp_finder.records.statements import run, upsert
from my_agent.icp_finder.records.store import now
from my_agent.icp_finder.records.tables import feedback
from my_agent.icp_finder.search.scoring import text_of, words

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
    """What the users of a tenant said about one company under one rule.

    Attributes:
        verdict: `rejected`: not shown any more; `kept`: shown first; `liked`: others like it rise.
        name: name of the company.
        reason: why, in the user's words; empty if not said.
        about: what the company does, to compare others with.
        at: time of the feedback.
    """

    verdict: Verdict
    name: str
    reason: str
    about: str
    at: datetime


async def feedback_of(tenant_id: str, rule_name: str) -> dict[str, Feedback]:
    """Return the feedback under a rule, by the key of the candidate (`uen:...`, `domain:...`).

    Args:
        tenant_id: the tenant.
        rule_name: the rule.
    """
    of_rule = (feedback.c.tenant_id == tenant_id, feedback.c.rule_name == rule_name)

    def work(connection: Connection) -> dict[str, Feedback]:
        rows = connection.execute(select(feedback).where(*of_rule))
        return {
            row.key: Feedback(row.verdict, row.name, row.reason, row.about, row.updated_at)
            for row in rows
        }

    return await run(work, tenant_id)


async def save(
    tenant_id: str, rule_name: str, verdict: Verdict, of: Sequence[Scored], reason: str = ""
) -> None:
    """Store feedback on candidates. It replaces earlier feedback on them.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the candidates.
        verdict: what the user said.
        of: the candidates.
        reason: why, in the user's words.
    """
    rows = [
        {
            "tenant_id": tenant_id,
            "rule_name": rule_name,
            "key": each.candidate.key,
            "verdict": verdict,
            "name": each.candidate.name,
            "reason": reason[:MAX_REASON],
            "about": text_of(each.candidate),
            "updated_at": now(),
        }
        for each in of
    ]
    await run(lambda connection: upsert(connection, feedback, rows), tenant_id, write=True)


async def forget(tenant_id: str, rule_name: str, keys: Sequence[str]) -> None:
    """Delete the feedback on candidates.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the candidates.
        keys: keys of the candidates.
    """
    gone = delete(feedback).where(
        feedback.c.tenant_id == tenant_id,
        feedback.c.rule_name == rule_name,
        feedback.c.key.in_(keys),
    )
    await run(lambda connection: connection.execute(gone), tenant_id, write=True)


def weights(said: Mapping[str, Feedback]) -> dict[str, float]:
    """Return feedback as numbers, for scores: -1 for a rejected company, 1 for a kept one. Pure."""
    return {key: -1.0 if each.verdict == "rejected" else 1.0 for key, each in said.items()}


def ranked(found: Sequence[Scored], said: Mapping[str, Feedback]) -> list[Scored]:
    """Return candidates without the rejected ones, in the order that the feedback gives. Pure.

    Kept candidates rise, and so do candidates that resemble a liked one. Ties keep their order.

    Args:
        found: the candidates, best first.
        said: the feedback, by key.
    """
    shown = [each for each in found if _verdict(each, said) != "rejected"]
    if not said:
        return shown
    models = [_content(each.about) for each in said.values() if each.verdict == "liked"]
    return sorted(shown, key=lambda each: -(each.score.total + bonus(each, said, models)))


def bonus(scored: Scored, said: Mapping[str, Feedback], models: Sequence[frozenset[str]]) -> float:
    """Return what feedback adds to the score of a candidate. Pure.

    Args:
        scored: the candidate.
        said: the feedback, by key.
        models: the words of each liked company.
    """
    kept = KEPT if _verdict(scored, said) in ("kept", "liked") else 0.0
    own = _content(text_of(scored.candidate))
    return kept + ALIKE * max((_alike(own, model) for model in models), default=0.0)


def likeness(one: Scored, other: Scored) -> float:
    """Return how alike two candidates are, from 0 to 1: by their words and industry codes. Pure."""
    same_code = bool(set(one.candidate.ssic[:1]) & set(other.candidate.ssic[:1]))
    texts = _content(text_of(one.candidate)), _content(text_of(other.candidate))
    return max(_alike(*texts), 0.8 if same_code else 0.0)


def _verdict(scored: Scored, said: Mapping[str, Feedback]) -> Verdict | None:
    found = said.get(scored.candidate.key)
    return None if found is None else found.verdict


def _content(text: str) -> frozenset[str]:
    return frozenset(words(text)) - _COMMON


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    least = min(len(one), len(other))
    return min(1.0, len(one & other) / least / FULL_LIKENESS) if least else 0.0
