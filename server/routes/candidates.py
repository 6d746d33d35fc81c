"""Candidates: the companies that a thread of the ICP finder has found, and what users say about them.

`GET /icp_finder/threads/{thread_id}/candidates` answers with the candidates of the thread's last
search, with evidence, feedback and the progress of their enrichment. `POST .../feedback` accepts or
rejects one, and `GET .../scores.csv` exports the search.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from my_agent.threads.policy_status import PolicyStatus
from server.operations import FEEDBACK_PUT, SCORES_EXPORT
from server.routes.conversation import find_thread
from server.routes.endpoint import Caller, Json, Refusal, endpoint
from threadhold import operations

GRAPH = "icp_finder"
# Settings bound what a thread shows; this bounds what a rejected list shows.
MOST_REJECTED = 200


class Said(BaseModel):
    """Feedback on a candidate. Null: earlier feedback is forgotten."""

    model_config = ConfigDict(extra="forbid", strict=True)

    key: str = Field(min_length=1, max_length=300)
    verdict: Literal["rejected", "kept", "liked"] | None
    reason: str = Field("", max_length=500)


@dataclass(frozen=True)
class Search:
    """The last search of the caller's thread.

    Attributes:
        tenant_id: The caller's tenant.
        domain: The domain of the company that the search was for.
        rule_name: The rule of the search. None: nothing has been searched yet.
        icp_hash: The hash of its ICP.
    """

    tenant_id: str
    domain: str
    rule_name: str | None
    icp_hash: str


@endpoint("GET /icp_finder/threads/{thread_id}/candidates")
async def show(caller: Caller) -> Json:
    """Answer with the candidates of a thread's last search, the rejected ones, and the enrichment."""
    return await _view(await _find(caller))


@endpoint("POST /icp_finder/threads/{thread_id}/feedback")
async def say(caller: Caller, body: Said) -> Json:
    """Store or forget feedback on a candidate of a thread. A closed thread refuses it."""
    from my_agent.icp_finder.records import feedback, store
    from my_agent.icp_finder.search import shortlist

    search = await _find(caller, writes=True)
    found = []
    if search.rule_name is not None:
        of = {"rule_name": search.rule_name, "icp_hash": search.icp_hash}
        every = await store.best_candidates(search.tenant_id, **of, limit=shortlist.MOST)
        found = [each for each in every if each.candidate.key == body.key]
    if search.rule_name is None or not found:
        raise HTTPException(404, "The thread has no such candidate")
    said = {"candidate": body.key, "verdict": body.verdict}
    async with caller.writing(FEEDBACK_PUT, **caller.request.path_params, **said):
        if body.verdict is None:
            await feedback.forget(search.tenant_id, search.rule_name, [body.key])
        else:
            given = (search.tenant_id, search.rule_name, body.verdict, found)
            await feedback.save(*given, reason=body.reason)
    return await _view(search)


@endpoint("GET /icp_finder/threads/{thread_id}/scores.csv")
async def scores(caller: Caller) -> Response:
    """Answer with the scores of a thread's last search as CSV, best first."""
    from my_agent.icp_finder.model import DiscoveryKey
    from my_agent.icp_finder.records.export import scores_of

    search, of = await _find(caller), None
    if search.rule_name is not None:
        of = DiscoveryKey(search.tenant_id, search.rule_name, search.icp_hash)
    return await _exported(caller, scores_of(search.domain, of), "scores.csv")


@endpoint("GET /export/latest_scores.csv")
async def latest_scores(caller: Caller) -> Response:
    """Answer with the tenant's latest scores as CSV."""
    # Imported here so that the server starts without loading the ICP finder.
    from my_agent.icp_finder.records.export import latest_scores as lines

    return await _exported(caller, lines(caller.tenant), "latest_scores.csv")


ROUTES = [latest_scores, show, say, scores]


async def _exported(caller: Caller, lines: AsyncIterator[Any], name: str) -> Response:
    await caller.enter(SCORES_EXPORT, **caller.request.path_params)
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "no-store",
    }
    return StreamingResponse(lines, media_type="text/csv", headers=headers)


async def _find(caller: Caller, *, writes: bool = False) -> Search:
    """Find the last search of the caller's thread.

    Raises:
        HTTPException: as `find_thread`; (409) `writes`, and the thread is read-only.
    """
    thread = await find_thread(caller, caller.name("thread_id"), GRAPH)
    if writes:
        _require_open(thread)
    values = (await operations.read_state(caller.user, thread["thread_id"]))["values"] or {}
    last, site = values.get("last") or {}, values.get("site") or {}
    return Search(
        caller.tenant,
        str(site.get("domain") or ""),
        last.get("rule_name"),
        str(last.get("icp_hash") or ""),
    )


def _require_open(thread: Json) -> None:
    # Imported here because the rules load the list of all domains, which is large.
    from hooks import policy

    metadata = thread["metadata"]
    if policy.is_governed(metadata) and metadata["status"] != PolicyStatus.OPEN:
        raise Refusal(409, policy.refusal(thread["thread_id"], metadata["status"]))


async def _view(search: Search) -> Json:
    from my_agent.icp_finder.enrichment import jobs
    from my_agent.icp_finder.records import feedback, store
    from my_agent.icp_finder.search import shortlist
    from my_agent.icp_finder.settings import IcpSettings

    if search.rule_name is None:
        return {"rule_name": None, "total": 0, "candidates": [], "rejected": [], "job": None}
    of = {"rule_name": search.rule_name, "icp_hash": search.icp_hash}
    every = await store.best_candidates(search.tenant_id, **of, limit=shortlist.MOST)
    said = await feedback.feedback_of(search.tenant_id, search.rule_name)
    ranked = feedback.ranked(every, said)
    rejected = [each for each in every if _verdict(said, each) == "rejected"]
    job = await jobs.find(search.tenant_id, **of)
    return {
        "rule_name": search.rule_name,
        "total": len(ranked),
        "candidates": [
            _candidate(each, said) for each in ranked[: IcpSettings.from_environment().wanted]
        ],
        "rejected": [_candidate(each, said) for each in rejected[:MOST_REJECTED]],
        "job": job and {"status": job.status, "done": job.done, "total": job.total},
    }


def _verdict(said: Any, scored: Any) -> str | None:
    found = said.get(scored.candidate.key)
    return None if found is None else str(found.verdict)


def _candidate(scored: Any, said: Any) -> Json:
    """Return a candidate as clients receive it."""
    candidate, score = scored.candidate, scored.score
    known, feedback = candidate.details, said.get(candidate.key)
    plain = ("key", "name", "industry", "region", "source")
    return {
        **{name: getattr(candidate, name) for name in plain},
        "website": candidate.website or known.get("website"),
        "score": round(score.total, 3),
        "parts": {name: round(part, 3) for name, part in score.parts.items()},
        "evidence": [dict(each) for each in score.evidence],
        "enrichment": {
            **{name: known.get(name) for name in ("status", "note", "about", "size")},
            **{name: list(known.get(name, ())) for name in ("emails", "phones", "pages")},
        },
        "verdict": None if feedback is None else feedback.verdict,
        "reason": "" if feedback is None else feedback.reason,
    }
