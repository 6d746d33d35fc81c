"""Candidates: the companies that a thread of the ICP finder has found, and what users say about them.

`GET /icp_finder/threads/{thread_id}/candidates` answers with the candidates of the thread's last
search, with evidence, feedback and the progress of their enrichment. `POST .../feedback` accepts or
rejects one, and `GET .../scores.csv` exports the search.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from contexts.policy_status import PolicyStatus
from server.operations import FEEDBACK_PUT, SCORES_EXPORT
from server.routes.conversation import Json, find_thread
from server.routes.export import GRAPH, tenant_of
from server.routes.forwarding import Answer, Request, read_body
from threadhold import LangGraphPlatform

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
        like: The platform's answer, whose headers are used.
    """

    tenant_id: str
    domain: str
    rule_name: str | None
    icp_hash: str
    like: Answer


async def show(request: Request) -> None:
    """Answer with the candidates of a thread's last search, the rejected ones, and the enrichment."""
    search = await _find(request)
    if search is not None:
        await request.answer(await _view(search), search.like)


async def say(request: Request) -> None:
    """Store or forget feedback on a candidate of a thread. A closed thread refuses it."""
    body = await read_body(request, Said)
    search = None if body is None else await _find(request, writes=True)
    if body is None or search is None:
        return
    from my_agent.icp_finder import feedback, records, shortlist

    found = []
    if search.rule_name is not None:
        of = {"rule_name": search.rule_name, "icp_hash": search.icp_hash}
        every = await records.best_candidates(search.tenant_id, **of, limit=shortlist.MOST)
        found = [each for each in every if each.candidate.key == body.key]
    if search.rule_name is None or not found:
        await request.answer(
            {"detail": "The thread has no such candidate"}, search.like, status=404
        )
        return
    said = {"candidate": body.key, "verdict": body.verdict}
    async with request.writing(FEEDBACK_PUT, **request.names, **said):
        if body.verdict is None:
            await feedback.forget(search.tenant_id, search.rule_name, [body.key])
        else:
            given = (search.tenant_id, search.rule_name, body.verdict, found)
            await feedback.save(*given, reason=body.reason)
    await request.answer(await _view(search), search.like)


async def scores(request: Request) -> None:
    """Answer with the scores of a thread's last search as CSV, best first."""
    from my_agent.icp_finder.export import nothing, scores_of

    search = await _find(request)
    if search is None:
        return
    await request.enter(SCORES_EXPORT, **request.names)
    lines = nothing()
    if search.rule_name is not None:
        lines = scores_of(search.domain, (search.tenant_id, search.rule_name, search.icp_hash))
    headers = {
        "content-disposition": 'attachment; filename="scores.csv"',
        "cache-control": "no-store",
    }
    response = StreamingResponse(lines, media_type="text/csv", headers=headers)
    await request.respond(response, search.like.headers)


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {
    "GET /icp_finder/threads/{thread_id}/candidates": show,
    "POST /icp_finder/threads/{thread_id}/feedback": say,
    "GET /icp_finder/threads/{thread_id}/scores.csv": scores,
}


async def _find(request: Request, *, writes: bool = False) -> Search | None:
    """Find the last search of the caller's thread. None: the request has been answered."""
    thread_id = await find_thread(request, request.names["thread_id"], GRAPH)
    if thread_id is None:
        return None
    if writes and await _is_closed(request, str(thread_id)):
        return None
    answer = await request.call("GET", f"/threads/{thread_id}/state")
    if answer.status != 200:
        await request.relay(answer)
        return None
    platform = request.platform
    auth = platform.config.sections["auth"] if isinstance(platform, LangGraphPlatform) else None
    tenant_id = None if auth is None else await tenant_of(auth, request.scope)
    if tenant_id is None:
        await request.pass_on()
        return None
    values = answer.content["values"] or {}
    last, site = values.get("last") or {}, values.get("site") or {}
    return Search(
        tenant_id,
        str(site.get("domain") or ""),
        last.get("rule_name"),
        str(last.get("icp_hash") or ""),
        answer,
    )


async def _is_closed(request: Request, thread_id: str) -> bool:
    """Return whether a thread is read-only. The request has then been answered with 409."""
    from hooks import policy

    found = await request.call("GET", f"/threads/{thread_id}")
    metadata = found.content["metadata"] if found.status == 200 else {}
    if not policy.is_governed(metadata) or metadata["status"] == PolicyStatus.OPEN:
        return False
    await request.answer(policy.refusal(thread_id, metadata["status"]), found, status=409)
    return True


async def _view(search: Search) -> Json:
    from my_agent.icp_finder import feedback, jobs, records, shortlist
    from my_agent.icp_finder.settings import IcpSettings

    if search.rule_name is None:
        return {"rule_name": None, "total": 0, "candidates": [], "rejected": [], "job": None}
    of = {"rule_name": search.rule_name, "icp_hash": search.icp_hash}
    every = await records.best_candidates(search.tenant_id, **of, limit=shortlist.MOST)
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
