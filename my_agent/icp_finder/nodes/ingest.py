"""Node `ingest`: read the new messages, and refuse them in a read-only thread."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command

from my_agent import asking as model_calls
from my_agent.context import Context
from my_agent.icp_finder import prompts, reports, values
from my_agent.icp_finder.enrichment import jobs
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.nodes import table as tables
from my_agent.icp_finder.reading import by_model, certain
from my_agent.icp_finder.reading.applying import Applied, apply
from my_agent.icp_finder.reading.commands import COSTLY
from my_agent.icp_finder.reading.heard import (
    Heard,
    Order,
    combined,
    from_form,
    has_data,
    nothing,
    order,
)
from my_agent.icp_finder.reading.questions import AGREED, Question, pressed
from my_agent.icp_finder.reading.situation import HIDDEN, Situation
from my_agent.icp_finder.search import shortlist
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.state import State
from my_agent.threads import thread
from my_agent.understanding.acts import Reading
from my_agent.understanding.names import Listed
from my_agent.understanding.replies import reply_text, unanswered
from my_agent.user import caller
from my_agent.web.sites import domain, websites

# Characters of the new messages that count.
MAX_TEXT = 20_000


async def ingest(
    state: State, config: RunnableConfig, runtime: Runtime[Context]
) -> Command[Literal["return_user_probe", "__end__"]]:
    """Read the new messages or the answer to an interrupt.

    A press is taken as it is. A message is read by the configured model, or by the small reader, and
    code decides what its acts do. In a locked or archived thread, the user gets a fixed answer.

    Raises:
        NoTenantError: the user belongs to no tenant.
        ModelNotAllowedError: the settings do not allow the model that the run names.
        pydantic.ValidationError: a setting has an invalid value.
    """
    user, thread_id = caller(config), thread.thread_id(config)
    about = await thread.metadata(config)
    if thread.is_read_only(about):
        log_action("read_only", thread_id, status=about.get("status"))
        return Command(goto="__end__", update={"messages": [AIMessage(prompts.READ_ONLY)]})
    # langgraph's types exclude None, but a run without a context gets None outside a server.
    context = runtime.context or Context()  # type: ignore[truthy-bool]
    applied, without_model = await _read(state, about, config, context.model)
    update = _update(state, about, applied, thread.is_early(config, state.get("asking")))
    if without_model and not state.get("without_model"):
        update["notes"] = [without_model, *update["notes"]]
    update |= {
        "tenant_id": user.tenant_id,
        "thread_id": thread_id,
        "rule_name": _text(about.get("rule_name")) or IcpSettings.from_environment().icp_rule_name,
        "consent": False,
        "reply": None,
        "asking": None,
        "without_model": bool(without_model),
    }
    ended = await _ended(state, user.tenant_id)
    update |= {**ended, "notes": [*ended.get("notes", []), *update["notes"]]}
    heard = update["heard"]
    does = [each["name"] for each in (*heard["orders"], heard["wish"]) if each]
    log_action("turn", thread_id, by=heard["by"], does=does, unheard=len(heard["unheard"]))
    return Command(goto="return_user_probe", update=update)


async def _read(
    state: State, about: Mapping[str, Any], config: RunnableConfig, model: str | None
) -> tuple[Applied, str]:
    """Read the answer to a question, or the new messages; and say why the model did not."""
    reply, asking = state.get("reply"), state.get("asking")
    if reply is not None and not isinstance(reply, str):
        form = from_form(reply) if isinstance(reply, Mapping) else nothing()
        chosen = pressed(asking["kind"], reply) if asking else None
        if chosen is not None and not (chosen == "change" and has_data(form)):
            return Applied({**nothing(), "by": "press"}, chosen), ""
        if has_data(form):
            return Applied(form), ""
        reply = reply_text(reply)
    new = [str(each.text) for each in unanswered(state["messages"])] if reply is None else [reply]
    text = "\n".join(new)[:MAX_TEXT]
    if asking is not None and (chosen := pressed(asking["kind"], text)) is not None:
        return Applied({**nothing(), "by": "press"}, chosen), ""
    if not text.strip():
        return Applied(nothing()), ""
    if values.is_form(text) and (fields := values.labelled(text)):
        return Applied({**nothing(), "icp": fields, "by": "press"}), ""
    situation = await _situation(state, about, config)
    found = await by_model.read(text, situation, model=model, config=config)
    if isinstance(found, Reading):
        return await asyncio.to_thread(apply, situation, text, found, "model"), ""
    # In a thread: the first call reads the public suffix list.
    small = await asyncio.to_thread(certain.read, text, situation)
    applied = await asyncio.to_thread(apply, situation, text, small, "code")
    if isinstance(found, model_calls.Failed):
        log_action("model_fallback", thread.thread_id(config), problem=found.kind, what="turn")
        return applied, prompts.WITHOUT_READER.format(found.said)
    return applied, ""


async def _ended(state: State, tenant_id: str) -> dict[str, Any]:
    """Return a sentence about the end of an enrichment in the background, if it is not told yet."""
    enrichment, last = state.get("enrichment"), state.get("last")
    if not (enrichment and enrichment["job"] and last) or enrichment.get("told"):
        return {}
    job = await jobs.find(tenant_id, **last)
    if job is None or job.id != enrichment["job"] or job.status not in ("done", "failed"):
        return {}
    return {"enrichment": {**enrichment, "told": True}, "notes": [reports.progress(job)]}


async def _situation(state: State, about: Mapping[str, Any], config: RunnableConfig) -> Situation:
    """Return what a message is read against."""
    asking, site, change = state.get("asking"), state.get("site"), state.get("change")
    icp, asked, enrichment = state.get("icp"), state.get("asked"), state.get("enrichment")
    label = _label(state, about)
    known = site["website"] if site else label
    if asking is None and asked is None and site is None:
        # A first message that is only a website names the company, or else its customers.
        asked = "customers" if label else "website"
    return Situation(
        asking=asking,
        asked=asked,
        website=domain(known) if known else "",
        customers=[each["domain"] for each in state.get("customers", [])],
        icp=values.merged(icp, change["icp"]) if icp and change else icp,
        listed=await _listed(state, caller(config).tenant_id),
        confirmed=bool(state.get("confirmed")),
        running=bool(enrichment and enrichment["job"] and not enrichment.get("told")),
    )


async def _listed(state: State, tenant_id: str) -> list[Listed]:
    """Return the candidates that can be named: all of the last search, and those with feedback."""
    if (last := state.get("last")) is None:
        return []
    table = await tables.load(tenant_id, last)
    places = {key: at for at, key in enumerate(state.get("view") or [], 1)}
    hidden = {key for key, given in table.said.items() if given.verdict == "rejected"}
    listed = {}
    for key, each in table.known.items():
        candidate = each.candidate
        site = domain(candidate.website) if candidate.website else shortlist.domain_of(each)
        about = HIDDEN if key in hidden else candidate.industry
        listed[key] = Listed(key, candidate.name, places.get(key, 0), site, about)
    others = {key: Listed(key, given.name, about=HIDDEN) for key, given in table.said.items()}
    return sorted({**others, **listed}.values(), key=lambda each: (not each.number, each.number))


def _update(
    state: State, about: Mapping[str, Any], applied: Applied, is_early: bool
) -> dict[str, Any]:
    """Return the update for what was read."""
    asking, heard, choice = state.get("asking"), applied.heard, applied.choice
    if is_early and choice is not None:
        # A second click: the message was sent before the question was asked.
        choice, heard = None, {**heard, "orders": [order("talk", words="early")]}
    notes, answer = list(heard["notes"]), None
    if asking is not None and choice is not None:
        answer = {"kind": asking["kind"], "value": choice}
        heard, more = _answered(state, asking, choice, heard)
        notes += more
    if heard["unheard"]:
        notes.append(prompts.unheard(heard["unheard"]))
    is_new = has_data(heard)
    if applied.unsure and not is_new:
        notes.append(prompts.UNSURE)
    seed = about.get("payload") if state.get("site") is None else None
    if isinstance(seed, Mapping):
        # The payload that the thread was created with comes before its first message.
        heard = combined({**from_form(seed), "website": None}, heard)
    heard, offers = _offered(heard, can_undo=bool(state.get("undo")))
    return {
        "website": _label(state, about),
        "heard": heard,
        "notes": notes,
        "seeded": not is_new and (isinstance(seed, Mapping) or state.get("seeded", False)),
        "answer": answer,
        # A question that was not answered is asked again.
        "waiting": asking if answer is None and not is_new else None,
        "offers": [*(state.get("offers") or []), *([] if is_early else offers)],
        "enough": heard["enough"] or state.get("enough", False),
    }


def _offered(heard: Heard, *, can_undo: bool) -> tuple[Heard, list[Order]]:
    """Return a message without the orders that are not sure, and these orders.

    A search or an enrichment that is named with them is asked about in the same question.
    """
    sure, unsure, wish = list[Order](), list[Order](), heard["wish"]
    for each in heard["orders"]:
        # Who cannot take back anything is told so at once.
        is_sure = each["sure"] or (each["name"] == "undo" and not can_undo)
        (sure if is_sure else unsure).append(each)
    if unsure and wish is not None and wish["name"] in ("enrich", "search"):
        unsure, wish = [*unsure, wish], None
    return {**heard, "orders": sure, "wish": wish}, unsure


def _answered(state: State, asking: Question, choice: str, heard: Heard) -> tuple[Heard, list[str]]:
    """Return what the chosen option adds to a message, and sentences about it."""
    kind, details = asking["kind"], asking["details"]
    agrees = choice == AGREED.get(kind)
    if kind == "domain":
        return _role(choice, str(details.get("website")), heard)
    if kind == "enrich" and agrees:
        return {**heard, "wish": order("enrich", details.get("keys"))}, []
    if kind == "offer" and agrees:
        return _accepted(state, details.get("orders", []), heard), []
    stays = kind in ("start_over", "new_session", "offer") and not agrees
    return heard, [prompts.KEPT] if stays else []


def _accepted(state: State, orders: list[Order], heard: Heard) -> Heard:
    """Return a message with the orders that were offered."""
    offered = [order(each["name"], each["keys"], each["words"]) for each in orders]
    gone = {key for each in offered if each["name"] == "exclude" for key in each["keys"] or []}
    fields = {name: values.of(state.get("icp"), name) for name in values.FIELDS}
    without = {
        name: [each for each in given if each not in gone]
        for name, given in fields.items()
        if gone & {*given}
    }
    wish = next((each for each in offered if each["name"] in COSTLY), heard["wish"])
    done = [each for each in offered if each is not wish and each["name"] != "exclude"]
    icp = {**without, **heard["icp"]}
    return {**heard, "orders": [*heard["orders"], *done], "wish": wish, "icp": icp}


def _role(choice: str, website: str, heard: Heard) -> tuple[Heard, list[str]]:
    """Return what the answer to the question about a website does."""
    if choice == "ours":
        return {**heard, "website": website}, []
    if choice == "customer":
        return {**heard, "customers": [*heard["customers"], website]}, []
    if choice == "candidate":
        added = order("candidate", words=domain(website))
        return {**heard, "orders": [*heard["orders"], added]}, []
    return heard, [prompts.KEPT]


def _label(state: State, about: Mapping[str, Any]) -> str | None:
    """Return the website that the thread was opened for, unless the user has started over."""
    found = websites(_text(about.get("website")))
    return None if state.get("fresh") or not found else found[0]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
