"""What has been said, and whether the thread takes it."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from my_agent.icp_finder.nodes.ingest import ingest
from my_agent.user import NoTenantError
from tests.support.icp_state import (
    RULE,
    config,
    confirmed,
    said,
    state,
    updates,
)


async def test_tenant_and_thread_are_the_server_s_to_say(metadata: dict[str, Any]) -> None:
    found = updates(await ingest(state("hello", tenant_id="forged"), config()))
    assert (found["tenant_id"], found["thread_id"], found["rule_name"]) == ("acme", "t", RULE)


async def test_a_user_of_no_tenant_is_refused() -> None:
    nobody: Any = {"configurable": {"langgraph_auth_user": {"identity": "studio"}}}
    with pytest.raises(NoTenantError):
        await ingest(state("hello"), nobody)


@pytest.mark.parametrize("status", ["locked", "archived"])
async def test_a_closed_thread_is_answered_and_changed_in_nothing(
    metadata: dict[str, Any], logged: list[Any], status: str
) -> None:
    metadata["status"] = status
    command = await ingest(state("our website is acme.com"), config())
    assert command.goto == "__end__"
    assert updates(command).keys() == {"messages"}
    assert "read-only" in said(command)
    assert ("read_only", status) in [(line["action"], line["status"]) for line in logged]


@pytest.mark.parametrize("status", ["open", "pending_lock", None])
async def test_an_open_thread_goes_on(metadata: dict[str, Any], status: str | None) -> None:
    metadata["status"] = status
    assert (await ingest(state("hello"), config())).goto == "return_user_probe"


async def test_everything_said_since_the_last_answer_is_heard(metadata: dict[str, Any]) -> None:
    messages = [HumanMessage("a.com"), AIMessage("?"), HumanMessage("b.com"), HumanMessage("c.com")]
    found = updates(await ingest(state(messages=messages), config()))
    assert found["heard"]["sites"] == ["https://b.com", "https://c.com"]


async def test_a_message_answers_the_question_that_waits(metadata: dict[str, Any]) -> None:
    asking = {"kind": "rerun"}
    found = updates(await ingest(state("yes please", asking=asking), config()))
    assert found["answer"] == {"kind": "rerun", "value": "rerun"}
    assert (found["asking"], found["unclear"]) == (None, False)


async def test_a_reply_that_chooses_nothing_is_unclear_unless_it_tells_something(
    metadata: dict[str, Any],
) -> None:
    asking = {"kind": "rerun"}
    found = updates(await ingest(state("why?", asking=asking), config()))
    assert (found["answer"], found["unclear"]) == (None, True)
    found = updates(await ingest(state("industries: steel", asking=asking), config()))
    assert (found["answer"], found["unclear"]) == (None, False)
    assert found["heard"]["icp"] == {"industries": ["steel"]}


async def test_a_structured_reply_is_heard(metadata: dict[str, Any]) -> None:
    asking = {"kind": "confirm_icp"}
    reply = {"choice": "change", "icp": {"regions": ["Asia"]}}
    found = updates(await ingest(state("x", asking=asking, reply=reply), config()))
    # It says already what to change.
    assert found["answer"] is None
    assert found["heard"]["icp"] == {"regions": ["Asia"]}
    assert found["reply"] is None


async def test_a_thread_is_about_what_it_was_opened_with(metadata: dict[str, Any]) -> None:
    metadata |= {
        "website": "WWW.Acme.com/",
        "rule_name": "Big ones",
        "payload": {"industries": ["steel"], "customers": ["b.com", "c.com"]},
    }
    found = updates(await ingest(state("hello"), config()))
    assert (found["website"], found["rule_name"]) == ("https://www.acme.com", "Big ones")
    assert found["heard"]["icp"] == {"industries": ["steel"]}
    assert found["heard"]["sites"] == ["https://b.com", "https://c.com"]
    assert found["seeded"]
    later = updates(await ingest(confirmed("hello"), config()))
    assert later["heard"]["icp"] == {}


@pytest.mark.parametrize("value", [5, None, "", "nonsense", ["a.com"]])
async def test_odd_metadata_says_nothing(metadata: dict[str, Any], value: Any) -> None:
    metadata |= {"website": value, "payload": value, "rule_name": None}
    found = updates(await ingest(state("hello"), config()))
    assert (found["website"], found["rule_name"]) == (None, RULE)


async def test_the_environment_names_the_rule(
    metadata: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICP_RULE_NAME", "House rule")
    assert updates(await ingest(state("hello"), config()))["rule_name"] == "House rule"
