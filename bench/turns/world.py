"""World: what can be seen of a conversation and its tenant at one moment."""

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from bench.turns.values import site
from my_agent.icp_finder.records.tables import candidates, feedback, jobs, profiles, rules
from my_agent.tables import run

Logs = list[MutableMapping[str, Any]]
FIELDS = ("website", "customers", "industries", "sizes", "regions", "keywords", "exclusions")
"""What is stored of a company and its ideal customers."""

# Of the log: the choices and actions that end a session.
_ENDS = frozenset(["new", "start_over", "started_over", "new_session", "session_opened"])
_ANNOUNCES = re.compile(r"\bThe new session is for\b")

Profile = dict[str, list[str]]
"""The values of each of `FIELDS`."""


@dataclass(frozen=True)
class World:
    """What can be seen.

    Attributes:
        values: the state of the thread.
        waiting: the question that waits for a choice.
        said: what the last message was answered.
        searched: number of searches since the last message was sent.
        locked: whether the last message has opened another session.
        verdicts: verdict by the candidate's key.
        tried: time of the last enrichment by the candidate's key.
        queued: keys of the candidates of background jobs.
        stored: stored profiles by their domain.
    """

    values: Mapping[str, Any]
    waiting: Mapping[str, Any] | None
    said: str
    searched: int
    locked: bool
    verdicts: Mapping[str, str]
    tried: Mapping[str, datetime | None]
    queued: frozenset[str]
    stored: Mapping[str, Profile]

    @property
    def asks(self) -> str:
        """Return the kind of the question that waits; `none` if there is none."""
        return str(self.waiting["kind"]) if self.waiting else "none"

    @property
    def profile(self) -> Profile:
        """Return the profile that the thread works with."""
        company = {"site": self.values.get("site"), "customers": self.values.get("customers")}
        return profile_of(company, self.values.get("icp"))

    @property
    def every(self) -> list[str]:
        """Return all values that are stored, or that the thread works with."""
        return [
            value
            for profile in (self.profile, *self.stored.values())
            for values in profile.values()
            for value in values
        ]

    @property
    def change(self) -> Profile:
        """Return the values of the change that waits for an answer; only fields that it gives."""
        change = self.values.get("change") or {}
        icp = change.get("icp") or {}
        given = {name: _texts(icp[name]) for name in FIELDS if name in icp}
        sites = change.get("customers")
        sites = sites if isinstance(sites, list) else change.get("sites") or []
        new = [*sites, *(pair[1] for pair in change.get("swaps") or [])]
        if change.get("website"):
            given["website"] = [site(str(change["website"]))]
        if new:
            given["customers"] = [site(_domain(each)) for each in new]
        return given

    @property
    def swapped(self) -> list[str]:
        """Return the customers that the waiting change takes out."""
        change = self.values.get("change") or {}
        gone = [*(pair[0] for pair in change.get("swaps") or []), *(change.get("without") or [])]
        return [site(str(each)) for each in gone]


async def seen(
    tenant: str,
    values: Mapping[str, Any],
    waiting: Mapping[str, Any] | None,
    said: str,
    logs: Logs,
) -> World:
    """Return what can be seen of a tenant.

    Args:
        tenant: the tenant, and its thread.
        values: the state of the thread.
        waiting: the question that waits for a choice.
        said: what the last message was answered.
        logs: what was logged since then.
    """

    def work(connection: Connection) -> World:
        def rows(table: Any) -> Any:
            return connection.execute(select(table).where(table.c.tenant_id == tenant))

        own = [each for each in logs if each.get("thread_id") == tenant]
        ends = any(not _ENDS.isdisjoint((each.get("chosen"), each.get("action"))) for each in own)
        icps = {row.domain: row.icp for row in rows(rules)}
        return World(
            values=values,
            waiting=waiting,
            said=said,
            # A search that finds nothing changes no row.
            searched=sum(each.get("action") == "icp_refreshed" for each in own),
            locked=ends or _ANNOUNCES.search(said) is not None,
            verdicts={row.key: row.verdict for row in rows(feedback)},
            tried={row.key: row.tried_at for row in rows(candidates)},
            queued=frozenset(key for row in rows(jobs) for key in row.candidate_keys),
            stored={
                row.domain: profile_of(row.company, icps.get(row.domain)) for row in rows(profiles)
            },
        )

    return await run(work, tenant)


def profile_of(company: Mapping[str, Any], icp: Mapping[str, Any] | None) -> Profile:
    """Return the values of a company and its ICP."""
    own = company.get("site")
    return {
        "website": [own["domain"]] if own else [],
        "customers": [each["domain"] for each in company.get("customers") or []],
        **{name: _texts((icp or {}).get(name)) for name in FIELDS[2:]},
    }


def _domain(given: Any) -> str:
    return str(given["domain"] if isinstance(given, Mapping) else given)


def _texts(value: Any) -> list[str]:
    """Return all texts in a value, however deep."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list | tuple | set | frozenset):
        return [text for each in value for text in _texts(each)]
    return [str(value)]
