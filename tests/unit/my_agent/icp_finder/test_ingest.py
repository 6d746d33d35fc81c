"""Node `ingest`: which messages it reads, and from which threads."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime

from my_agent.context import Context
from my_agent.icp_finder import prompts, reports
from my_agent.icp_finder.enrichment import jobs
from my_agent.icp_finder.model import Job
from my_agent.icp_finder.nodes.ingest import ingest
from my_agent.icp_finder.reading.heard import order
from my_agent.icp_finder.reading.questions import question
from my_agent.icp_finder.records import feedback, store
from my_agent.icp_finder.state import State
from my_agent.keys import WAITING_QUESTIONS
from my_agent.user import NoTenantError
from tests.support.icp import act
from tests.support.icp_state import (
    RULE,
    WHICH,
    config,
    confirmed,
    heard,
    said,
    saved,
    scored,
    state,
    updates,
)
from tests.support.openai_replies import say, say_json
from tests.support.openai_server import OpenAIServer


async def read(of: State) -> dict[str, Any]:
    return updates(await ingest(of, config(), Runtime(context=Context())))


async def test_server_determines_tenant_and_thread(metadata: dict[str, Any]) -> None:
    found = updates(
        await ingest(state("hello", tenant_id="forged"), config(), Runtime(context=Context()))
    )
    assert (found["tenant_id"], found["thread_id"], found["rule_name"]) == ("acme", "t", RULE)


async def test_user_without_tenant_is_rejected() -> None:
    nobody: Any = {"configurable": {"langgraph_auth_user": {"identity": "studio"}}}
    with pytest.raises(NoTenantError):
        await ingest(state("hello"), nobody, Runtime(context=Context()))


@pytest.mark.parametrize("status", ["locked", "archived"])
async def test_read_only_thread_gets_fixed_answer_and_stays_unchanged(
    metadata: dict[str, Any], logged: list[Any], status: str
) -> None:
    metadata["status"] = status
    command = await ingest(state("our website is acme.com"), config(), Runtime(context=Context()))
    assert command.goto == "__end__"
    assert updates(command).keys() == {"messages"}
    assert "read-only" in said(command)
    assert ("read_only", status) in [(line["action"], line["status"]) for line in logged]


@pytest.mark.parametrize("status", ["open", "pending_lock", None])
async def test_open_thread_continues(metadata: dict[str, Any], status: str | None) -> None:
    metadata["status"] = status
    assert (
        await ingest(state("hello"), config(), Runtime(context=Context()))
    ).goto == "return_user_probe"


async def test_all_messages_since_last_answer_are_read(metadata: dict[str, Any]) -> None:
    messages = [HumanMessage("a.com"), AIMessage("?"), HumanMessage("b.com"), HumanMessage("c.com")]
    found = await read(state(messages=messages, asked="customers"))
    assert found["heard"]["customers"] == ["https://b.com", "https://c.com"]


async def test_first_website_is_the_companys(metadata: dict[str, Any]) -> None:
    found = await read(state("acme.com"))
    assert (found["heard"]["website"], found["heard"]["stray"]) == ("https://acme.com", None)


async def test_message_answers_waiting_question(metadata: dict[str, Any]) -> None:
    found = await read(state("yes please", asking=question("rerun", "?")))
    assert found["answer"] == {"kind": "rerun", "value": "rerun"}
    assert (found["asking"], found["waiting"], found["notes"]) == (None, None, [])


@pytest.mark.parametrize("reply", ["rerun", "Search again", "1", 1, True, {"choice": "rerun"}])
async def test_press_answers_waiting_question(metadata: dict[str, Any], reply: Any) -> None:
    found = await read(state("x", asking=question("rerun", "?"), reply=reply))
    assert found["answer"] == {"kind": "rerun", "value": "rerun"}
    assert found["heard"]["by"] == "press"


async def test_press_is_not_read_by_the_model(
    metadata: dict[str, Any], model_endpoint: OpenAIServer
) -> None:
    await read(state("x", asking=question("rerun", "?"), reply="rerun"))
    assert model_endpoint.requests == []


async def test_reply_without_choice_is_unheard_and_the_question_waits(
    metadata: dict[str, Any],
) -> None:
    asking = question("rerun", "?")
    found = await read(state("hm, well", asking=asking))
    assert (found["answer"], found["waiting"]) == (None, asking)
    assert found["notes"] == [prompts.unheard(["hm, well"])]


async def test_reply_with_data_needs_no_answer(metadata: dict[str, Any]) -> None:
    found = await read(state("industries: steel", asking=question("rerun", "?")))
    assert (found["answer"], found["waiting"], found["notes"]) == (None, None, [])
    assert found["heard"]["icp"] == {"industries": ["steel"]}


async def test_agreement_that_is_not_sure_is_asked_for_again(
    metadata: dict[str, Any], model_endpoint: OpenAIServer
) -> None:
    asking = question("rerun", "?")
    consent = {"kind": "Consent", "quote": "ok", "yes": True, "to": "rerun"}
    model_endpoint.enqueue(say_json({"language": "en", "acts": [consent]}))
    found = await read(state("ok, if it is free", asking=asking))
    assert (found["answer"], found["waiting"], found["notes"]) == (None, asking, [prompts.UNSURE])


async def test_model_reads_a_message_and_code_checks_it(
    metadata: dict[str, Any], model_endpoint: OpenAIServer
) -> None:
    acts = [
        {"kind": "Answer", "quote": "acme dot com", "field": "website", "value": "acme.com"},
        {"kind": "Answer", "quote": "a customer of ours", "field": "customers", "value": "b.com"},
    ]
    model_endpoint.enqueue(say_json({"language": "en", "acts": acts}))
    found = await read(state("you find us at acme dot com"))
    assert found["heard"]["website"] == "https://acme.com"
    # The words of the second act are not in the message.
    assert (found["heard"]["customers"], found["heard"]["by"]) == ([], "model")


async def test_model_that_fails_is_replaced_and_told_once(
    metadata: dict[str, Any], model_endpoint: OpenAIServer, logged: list[Any]
) -> None:
    for _ in range(4):
        model_endpoint.enqueue(say("I would say logistics"))
    found = await read(state("acme.com"))
    assert (found["heard"]["website"], found["heard"]["by"]) == ("https://acme.com", "code")
    assert found["without_model"]
    assert "I understand only plain answers" in found["notes"][0]
    again = await read(state("acme.com", without_model=True))
    assert (again["without_model"], again["notes"]) == (True, [])
    assert [line["what"] for line in logged if line["action"] == "model_fallback"] == ["turn"] * 2


async def test_second_click_does_not_answer_the_next_question(metadata: dict[str, Any]) -> None:
    asking = question("enrich", "?")
    early = config()
    early["configurable"][WAITING_QUESTIONS] = ["the one before"]
    found = updates(await ingest(state("yes", asking=asking), early, Runtime(context=Context())))
    assert (found["answer"], found["waiting"]) == (None, asking)
    assert found["heard"] == heard(orders=[order("talk", words="early")])


async def test_agreement_to_enrich_is_about_the_candidates_that_were_named(
    metadata: dict[str, Any],
) -> None:
    asking = question("enrich", "?", keys=["domain:b.com"])
    found = await read(confirmed("yes", asking=asking))
    assert found["answer"] == {"kind": "enrich", "value": "enrich"}
    assert found["heard"]["wish"] == order("enrich", ["domain:b.com"])


async def test_order_that_is_not_sure_waits_to_be_offered(
    metadata: dict[str, Any], model_endpoint: OpenAIServer
) -> None:
    await saved()
    act = {"kind": "Command", "quote": "reject", "name": "reject", "targets": ["domain:a.com"]}
    model_endpoint.enqueue(say_json({"language": "en", "acts": [act]}))
    of = confirmed("maybe reject the last one", last=WHICH, view=["domain:a.com"])
    found = await read(of)
    assert found["heard"]["orders"] == []
    offered = {**order("reject", ["domain:a.com"], sure=False), "names": ["domain:a.com"]}
    assert found["offers"] == [offered]


@pytest.mark.parametrize(
    ("choice", "orders"), [("do", [order("reject", ["domain:b.com"], "small")]), ("skip", [])]
)
async def test_offered_orders_are_done_only_if_chosen(
    metadata: dict[str, Any], choice: str, orders: list[Any]
) -> None:
    unsure = order("reject", ["domain:b.com"], "small", sure=False)
    found = await read(confirmed("x", asking=question("offer", "?", orders=[unsure]), reply=choice))
    assert found["heard"]["orders"] == orders


@pytest.mark.parametrize(
    ("choice", "said_"),
    [
        ("ours", {"website": "https://w.com"}),
        ("customer", {"customers": ["https://w.com"]}),
        ("candidate", {"orders": [order("candidate", words="w.com")]}),
        ("mention", {}),
    ],
)
async def test_role_of_a_website_is_what_the_user_chooses(
    metadata: dict[str, Any], choice: str, said_: Any
) -> None:
    asking = question("domain", "?", website="https://w.com")
    found = await read(confirmed("x", asking=asking, reply=choice))
    assert found["heard"] == heard(**said_, by="press")


async def test_candidates_are_named_by_the_numbers_that_were_shown(
    metadata: dict[str, Any],
) -> None:
    await saved()
    await store.add_candidates("acme", **WHICH, found=[scored("domain:b.com", 0.9)])
    of = confirmed("reject 1", last=WHICH, view=["domain:b.com", "domain:a.com"])
    assert (await read(of))["heard"]["orders"] == [order("reject", ["domain:b.com"])]
    # Without a list that was shown, a number means nothing.
    assert (await read({**of, "view": []}))["heard"]["orders"] == []


async def test_rejected_candidate_can_be_named_also_if_no_search_finds_it(
    metadata: dict[str, Any],
) -> None:
    await saved()
    gone = scored("domain:gone.com")
    await feedback.save("acme", RULE, "rejected", [gone], "")
    found = await read(confirmed("restore domain:gone.com", last=WHICH))
    assert found["heard"]["orders"] == [order("restore", ["domain:gone.com"])]


async def test_structured_reply_is_parsed(metadata: dict[str, Any]) -> None:
    asking = question("confirm_icp", "?")
    reply = {"choice": "change", "icp": {"regions": ["Asia"]}}
    found = updates(
        await ingest(state("x", asking=asking, reply=reply), config(), Runtime(context=Context()))
    )
    # The reply already contains the change.
    assert found["answer"] is None
    assert found["heard"]["icp"] == {"regions": ["Asia"]}
    assert found["reply"] is None


async def test_thread_payload_seeds_the_first_message(metadata: dict[str, Any]) -> None:
    metadata |= {
        "website": "WWW.Acme.com/",
        "rule_name": "Big ones",
        "payload": {"industries": ["steel"], "customers": ["b.com", "c.com"]},
    }
    found = updates(await ingest(state("hello"), config(), Runtime(context=Context())))
    assert (found["website"], found["rule_name"]) == ("https://www.acme.com", "Big ones")
    assert found["heard"]["icp"] == {"industries": ["steel"]}
    assert found["heard"]["customers"] == ["https://b.com", "https://c.com"]
    assert found["seeded"]
    later = updates(await ingest(confirmed("hello"), config(), Runtime(context=Context())))
    assert later["heard"]["icp"] == {}


@pytest.mark.parametrize("value", [5, None, "", "nonsense", ["a.com"]])
async def test_invalid_metadata_is_ignored(metadata: dict[str, Any], value: Any) -> None:
    metadata |= {"website": value, "payload": value, "rule_name": None}
    found = updates(await ingest(state("hello"), config(), Runtime(context=Context())))
    assert (found["website"], found["rule_name"]) == (None, RULE)


async def test_environment_sets_the_default_rule(
    metadata: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICP_RULE_NAME", "House rule")
    assert (
        updates(await ingest(state("hello"), config(), Runtime(context=Context())))["rule_name"]
        == "House rule"
    )


UNSURE = [act("Command", "Undo the snacks", name="undo"), act("Command", "search", name="search")]


async def test_undo_is_offered_with_the_search_that_is_named_with_it(
    metadata: dict[str, Any], model_endpoint: OpenAIServer
) -> None:
    change: Any = {"what": "feedback", "said": {"domain:a.com": None}}
    for undo, offered in (([change], ["undo", "search"]), ([], [])):
        model_endpoint.enqueue(say_json({"language": "en", "acts": UNSURE}))
        found = await read(confirmed("Undo the snacks and search again.", undo=undo))
        assert [each["name"] for each in found["offers"]] == offered
    # What cannot be taken back is said at once.
    assert [each["name"] for each in found["heard"]["orders"]] == ["undo"]
    orders = [order("undo", sure=False), order("search", sure=False)]
    asking = question("offer", "?", orders=orders)
    found = await read(confirmed("x", asking=asking, reply="do"))
    assert found["heard"]["orders"] == [order("undo")]
    assert found["heard"]["wish"] == order("search")


async def test_end_of_an_enrichment_is_said_once(
    metadata: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("j", "running", created=False, done=1, total=2)

    async def find(*_: object, **__: object) -> Job:
        return job

    monkeypatch.setattr(jobs, "find", find)
    enrichment: Any = {"now": [], "failed": [], "job": "j", "queued": 2}
    await saved()
    known = confirmed("hello", last=WHICH, enrichment=enrichment)
    assert "enrichment" not in await read(known)
    job = Job("j", "done", created=False, done=2, total=2)
    found = await read(known)
    assert found["notes"] == [reports.progress(job)]
    again = await read(confirmed("hello", last=WHICH, enrichment=found["enrichment"]))
    assert again["notes"] == []
