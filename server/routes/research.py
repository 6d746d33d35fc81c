"""Research: start a project, follow it, read it, and stop or continue it.

`POST /research {question, project_id?, limits?}` starts a project and answers with its progress.
`GET /research/{project_id}/progress`, `/report` and `/state` read it; `POST .../cancel`,
`/finish`, `/pause` and `/resume` change what happens next. A project is a thread of its user.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Field, field_validator
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from server.operations import PROJECT_CREATE, PROJECT_UPDATE, REPORT_EXPORT
from server.routes.conversation import Json, find_thread
from server.routes.export import tenant_of
from server.routes.forwarding import Answer, Request, read_body
from threadhold import LangGraphPlatform
from threadhold.gate import own_write

if TYPE_CHECKING:
    from my_agent.research.projects import Key, Project

GRAPH = "research"
logger = logging.getLogger(__name__)
_LIMITS = ("tokens", "model_calls", "fetches", "bytes", "seconds")
_OVER = ("success", "error", "timeout", "interrupted")
# Tasks that force a stop; the event loop keeps only weak references to tasks.
_forcing: set[asyncio.Task[None]] = set()


class _Limited(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    limits: dict[str, float] = Field(default_factory=dict)

    @field_validator("limits", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        unknown = sorted(set(value) - set(_LIMITS))
        if unknown:
            raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(_LIMITS)}")
        for name, amount in value.items():
            is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
            if not is_number or not 0 <= amount < float("inf"):
                raise ValueError(f"{name}: must be a number that is not negative")
        return {name: float(amount) for name, amount in value.items()}


class Start(_Limited):
    """A question. With a `project_id`, a repeated request starts nothing twice."""

    question: str
    project_id: UUID | None = Field(default=None, strict=False)


class Resume(_Limited):
    """New limits for the rest of the project."""


async def start(request: Request) -> None:
    """Start a project. If the project exists, answer with its progress."""
    body = await read_body(request, Start)
    if body is None:
        return
    # Imported here so that the server starts without loading the graph.
    from my_agent.research import projects
    from my_agent.research.nodes.begin import BadQuestion, checked

    try:
        question = checked({"question": body.question})
    except BadQuestion as error:
        await request.refuse(422, {"detail": f"question: {error}"})
        return
    project_id = body.project_id or uuid4()
    tenant_id, probe = await _tenant(request)
    if tenant_id is None:
        return
    key = projects.Key(tenant_id, str(project_id))
    known = None if body.project_id is None else await projects.find(key)
    if known is not None and known.question != question:
        # The thread may be another user's, of which this one learns nothing.
        if await _find(request, str(project_id)) is not None:
            detail = "The project has another question: start a new project for this one"
            await request.refuse(409, {"error": "other_question", "detail": detail})
        return
    if known is not None:
        await progress(request, str(project_id))
        return
    # The project's row is made by its first run: a thread that another user has is refused first.
    run = _run(question, body.limits, create=True)
    made = await request.call("POST", f"/threads/{project_id}/runs", run)
    if made.status == 409 and body.project_id is not None:
        await progress(request, str(project_id))
        return
    if made.status != 200:
        await request.relay(made)
        return
    # That of the first request, if this one repeats it.
    key = projects.Key(tenant_id, str(made.content["thread_id"]))
    async with request.writing(PROJECT_CREATE, project_id=key.project_id):
        await projects.create(key, question)
    await _show(request, key, made if probe is None else probe, status=201)


async def progress(request: Request, project_id: str | None = None) -> None:
    """Answer with the progress of a project."""
    found = await _find(request, project_id)
    if found is not None:
        await _show(request, *found)


async def report(request: Request) -> None:
    """Answer with the report: JSON with its Markdown, or Markdown or HTML if the client asks so."""
    found = await _find(request)
    if found is None:
        return
    key, probe = found
    from my_agent.research.model import Report, from_dict
    from my_agent.research.report import html, markdown

    values = await _values(request, key)
    if values is None:
        return
    content = values.get("report")
    if content is None:
        project = await _settled(request, key)
        detail = f"There is no report: the project is {project.status if project else 'queued'}"
        await request.answer({"error": "no_report", "detail": detail}, probe, status=409)
        return
    made = from_dict(Report, content)
    kind = _accepted(request)
    if kind == "application/json":
        body = {"report": content, "markdown": markdown.render(made)}
        await request.answer(body, probe)
        return
    await request.enter(REPORT_EXPORT, **request.names)
    response: Response = PlainTextResponse(markdown.render(made), media_type="text/markdown")
    if kind == "text/html":
        # The page holds words of foreign pages: nothing in it may run or load.
        response = HTMLResponse(
            html.render(made),
            headers={
                "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
                "img-src data:; sandbox",
                "x-content-type-options": "nosniff",
            },
        )
    await request.respond(response, probe.headers)


async def state(request: Request) -> None:
    """Answer with the snapshot of a project: results, pages with their texts, analysis, quotes."""
    found = await _find(request)
    if found is None:
        return
    key, probe = found
    from my_agent.research import progress as shown
    from my_agent.research.model import as_dict
    from my_agent.research.nodes.analyzer import load
    from my_agent.research.snapshots import snapshot

    values = await _values(request, key)
    if values is None:
        return
    project = await _settled(request, key)
    percentage = shown.view(project)["percentage"] if project else 0
    made = snapshot({"asked": "", **values}, key, await load(key), percentage)  # type: ignore[typeddict-item]
    status = project.status if project else "queued"
    await request.answer({**as_dict(made), "status": status}, probe)


async def cancel(request: Request) -> None:
    """Stop a project. Nothing new starts; what there is becomes the report."""
    from my_agent.research import projects

    def work(found: "Project") -> Json:
        if found.status == "queued" or found.status == "paused":
            return {"status": "cancelled", **projects.flagged("")}
        if found.status == "running":
            return projects.flagged("cancel")
        return {}

    changed = await _change(request, work, allowed=("queued", "running", "paused", "cancelled"))
    if changed is None:
        return
    project, probe = changed
    if project.status == "cancelled":
        # The run may still wait in the queue. If it has begun, it sees the status.
        await _cancel_runs(request, project.key, only="pending")
    elif project.status == "running":
        task = asyncio.create_task(_force_later(request, project.key))
        _forcing.add(task)
        task.add_done_callback(_forcing.discard)
    await _show(request, project.key, probe, status=202)


async def finish(request: Request) -> None:
    """Stop searching and reading, and report what there is."""
    from my_agent.research import projects

    def work(found: "Project") -> Json:
        if found.status in projects.ACTIVE and found.flag != "cancel":
            return projects.flagged("finish")
        if found.status == "paused":
            return {"status": "queued", **projects.flagged("finish")}
        return {}

    changed = await _change(request, work, allowed=("queued", "running", "paused"))
    if changed is not None:
        await _continue(request, *changed, {})


async def pause(request: Request) -> None:
    """Stop after the operations that run now. `resume` continues."""
    from my_agent.research import projects

    def work(found: "Project") -> Json:
        if found.status in projects.ACTIVE and found.flag == "":
            return projects.flagged("pause")
        return {}

    changed = await _change(request, work, allowed=("queued", "running", "paused"))
    if changed is not None:
        await _show(request, changed[0].key, changed[1], status=202)


async def resume(request: Request) -> None:
    """Continue a project that is paused, cancelled or failed, or whose report hit a limit.

    Pages that were read are not fetched again.
    """
    body = await read_body(request, Resume, otherwise=b"{}")
    if body is None:
        return
    from my_agent.research import projects
    from my_agent.research.budgets import Limits
    from my_agent.research.model import as_dict
    from my_agent.research.settings import ResearchSettings

    settings = ResearchSettings.from_environment()

    def refuse(found: "Project") -> str | None:
        if found.status != "completed":
            return None
        hit, before = found.progress.get("limits_hit"), found.progress.get("limits", {})
        if not hit:
            return "The project is complete, and no limit has cut it short"
        # Limits that the user has named before stay as they are.
        wanted = {**found.progress.get("wanted", {}), **body.limits}
        now = as_dict(Limits.of(settings, wanted))
        if not any(now[name] > before.get(name, 0) for name in hit):
            most = ", ".join(f"{name} ({before.get(name, 0):g})" for name in hit)
            return f"Name higher `limits` than those that were reached: {most}"
        return None

    def work(found: "Project") -> Json:
        if found.status in projects.ACTIVE:
            return projects.flagged("") if found.flag == "pause" else {}
        if refuse(found) is not None:
            return {}
        return {"status": "queued", "error": None, **projects.flagged("")}

    changed = await _change(request, work, refuse=refuse)
    if changed is not None:
        await _continue(request, *changed, body.limits)


async def delete(request: Request) -> None:
    """Delete a thread. If it is a project, delete its files, too. Its rows go with the thread."""
    try:
        thread_id = UUID(request.names["thread_id"])
    except ValueError:
        await request.pass_on()
        return
    tenant_id, _ = await _tenant(request)
    if tenant_id is None:
        return
    answer = await request.call("DELETE", f"/threads/{thread_id}")
    if 200 <= answer.status < 300:
        from my_agent.research import files, projects
        from my_agent.research.settings import ResearchSettings

        # The platform has checked that the thread is the caller's.
        key = projects.Key(tenant_id, str(thread_id))
        try:
            await files.remove(ResearchSettings.from_environment(), key)
        except OSError:
            logger.exception("The files of the deleted project %s were not removed", thread_id)
    await request.relay(answer)


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {
    "POST /research": start,
    "GET /research/{project_id}/progress": progress,
    "GET /research/{project_id}/report": report,
    "GET /research/{project_id}/state": state,
    "POST /research/{project_id}/cancel": cancel,
    "POST /research/{project_id}/finish": finish,
    "POST /research/{project_id}/pause": pause,
    "POST /research/{project_id}/resume": resume,
    "DELETE /threads/{thread_id}": delete,
}


# --- finding a project


async def _tenant(request: Request) -> tuple[str | None, Answer | None]:
    """Return the caller's tenant. None: the request has been answered."""
    probe = await request.call("POST", "/threads/count", {})
    if probe.status != 200:
        await request.relay(probe)
        return None, None
    platform = request.platform
    auth = platform.config.sections["auth"] if isinstance(platform, LangGraphPlatform) else None
    tenant_id = None if auth is None else await tenant_of(auth, request.scope)
    if tenant_id is None:
        # Another authentication: its tenants are unknown, so there is no such route.
        await request.pass_on()
        return None, None
    return tenant_id, probe


async def _find(request: Request, project_id: str | None = None) -> "tuple[Key, Answer] | None":
    """Find the caller's project. None: the request has been answered."""
    from my_agent.research.projects import Key

    thread_id = await find_thread(request, project_id or request.names["project_id"], GRAPH)
    if thread_id is None:
        return None
    tenant_id, probe = await _tenant(request)
    if tenant_id is None or probe is None:
        return None
    return Key(tenant_id, str(thread_id)), probe


async def _change(
    request: Request,
    work: "Callable[[Project], Json]",
    *,
    allowed: tuple[str, ...] = (),
    refuse: "Callable[[Project], str | None]" = lambda found: None,
) -> "tuple[Project, Answer] | None":
    """Change the project of a request. None: the request has been answered.

    Args:
        request: the request.
        work: returns the columns to change.
        allowed: statuses in which the request makes sense; none: all of them.
        refuse: returns why the request makes no sense, or None.
    """
    from my_agent.research import projects

    found = await _find(request)
    if found is None:
        return None
    key, probe = found
    before = await _settled(request, key)
    if before is None:
        detail = "The project has not begun: wait until its first run starts"
        await request.answer({"error": "not_begun", "detail": detail}, probe, status=409)
        return None
    problem = refuse(before)
    if allowed and before.status not in allowed:
        problem = f"The project is {before.status}"
    is_stopping = before.status in projects.ACTIVE and before.flag == "cancel"
    if is_stopping and not request.path.endswith("/cancel"):
        problem = "The project is being cancelled: wait until it has stopped"
    if problem is not None:
        await request.answer({"error": before.status, "detail": problem}, probe, status=409)
        return None
    action = request.path.rpartition("/")[2]
    async with request.writing(PROJECT_UPDATE, project_id=key.project_id, change=action):
        changed = await projects.change(key, work)
    return (changed or before), probe


async def _settled(request: Request, key: "Key") -> "Project | None":
    """Return a project, after its status was corrected if its run is over or will not stop."""
    from my_agent.research import projects
    from my_agent.research.settings import ResearchSettings

    found = await projects.find(key)
    if found is None or found.status not in projects.ACTIVE:
        return found
    patience = ResearchSettings.from_environment().research_stop_seconds
    if found.flag == "cancel" and projects.age(found.flag_at) > patience:
        await _force(request, key, f"The project did not stop within {patience:g} seconds")
        return await projects.find(key)
    if found.is_silent and found.run_id is not None:
        answer = await request.call("GET", f"/threads/{key.project_id}/runs/{found.run_id}")
        if answer.status == 404 or (answer.status == 200 and answer.content["status"] in _OVER):
            await _fail(key, "The run has ended without a result; resume the project")
            return await projects.find(key)
    return found


async def _values(request: Request, key: "Key") -> Json | None:
    """Return the state of a project's thread. None: the request has been answered."""
    answer = await request.call("GET", f"/threads/{key.project_id}/state")
    if answer.status != 200:
        await request.relay(answer)
        return None
    return dict(answer.content["values"] or {})


async def _show(request: Request, key: "Key", like: Answer, *, status: int = 200) -> None:
    """Answer with the progress of a project."""
    from my_agent.research import progress as shown
    from my_agent.research import projects

    found = await _settled(request, key)
    if found is None:
        # A client has started the run itself, and it has not begun.
        found = projects.Project(key, "", "queued", "", None, None)
    await request.answer(shown.view(found), like, status=status)


def _accepted(request: Request) -> str:
    """Return the first kind of answer that the client accepts."""
    headers = dict(request.scope["headers"])
    for each in headers.get(b"accept", b"").decode("latin-1").split(","):
        kind = each.partition(";")[0].strip().lower()
        if kind in ("application/json", "text/markdown", "text/html"):
            return str(kind)
    return "application/json"


# --- runs


def _run(question: str, limits: Json, *, create: bool = False) -> Json:
    return {
        "assistant_id": GRAPH,
        "input": {"question": question, **({"limits": limits} if limits else {})},
        # Each step is stored before the next one starts: after a crash, no finished step repeats.
        "durability": "sync",
        # A page follows the progress, and goes on behind the last event that it has.
        "stream_mode": ["custom"],
        "stream_resumable": True,
        "multitask_strategy": "reject",
        "config": {"recursion_limit": 10_000},
        **({"if_not_exists": "create"} if create else {}),
    }


async def _continue(
    request: Request, project: "Project", probe: Answer, limits: dict[str, float]
) -> None:
    """Start a run for a queued project, unless one works on it."""
    from my_agent.research import projects

    key = project.key
    if project.status == "queued":
        run = _run(project.question, limits)
        # The last run may still be storing its end.
        for _ in range(50):
            answer = await request.call("POST", f"/threads/{key.project_id}/runs", run)
            begun = answer.status == 200 or (
                answer.status == 409 and await _has_begun(request, project)
            )
            if begun or answer.status != 409:
                break
            await asyncio.sleep(0.1)
        if not begun:
            # A run that another request has started goes on.
            with own_write("product"):
                await projects.change(
                    key, lambda found: {"status": "paused"} if found.status == "queued" else {}
                )
            await request.relay(answer)
            return
    await _show(request, key, probe, status=202)


async def _has_begun(request: Request, project: "Project") -> bool:
    """Return whether another request, such as a second click, has started the project's next run."""
    answer = await request.call("GET", f"/threads/{project.key.project_id}/runs")
    runs = answer.content if answer.status == 200 else []
    return any(
        run["status"] in ("pending", "running") and run["run_id"] != project.run_id for run in runs
    )


async def _cancel_runs(request: Request, key: "Key", *, only: str) -> None:
    """Cancel the runs of a project that have this status, on behalf of the caller."""
    answer = await request.call("GET", f"/threads/{key.project_id}/runs")
    for run in answer.content if answer.status == 200 else []:
        if run["status"] == only:
            path = f"/threads/{key.project_id}/runs/{run['run_id']}/cancel"
            await request.call("POST", path)


async def _force_later(request: Request, key: "Key") -> None:
    """Stop a project by force if it has not stopped in time."""
    from my_agent.research import projects
    from my_agent.research.settings import ResearchSettings

    patience = ResearchSettings.from_environment().research_stop_seconds
    await asyncio.sleep(patience)
    found = await projects.find(key)
    if found is not None and found.status in projects.ACTIVE and found.flag == "cancel":
        await _force(request, key, f"The project did not stop within {patience:g} seconds")


async def _force(request: Request, key: "Key", reason: str) -> None:
    # The status first: a run that continues nevertheless sees it and starts nothing.
    await _fail(key, reason)
    await _cancel_runs(request, key, only="running")


async def _fail(key: "Key", reason: str) -> None:
    from my_agent.research import progress as shown
    from my_agent.research import projects

    def work(found: "Project") -> Json:
        if found.status not in projects.ACTIVE:
            return {}
        stages = shown.failed(found.progress)
        return {"status": "failed", "error": reason, "progress": stages, **projects.flagged("")}

    logger.error("Research project %s has failed: %s", key.project_id, reason)
    with own_write("product"):
        await projects.change(key, work)
