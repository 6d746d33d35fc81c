"""Node `ingest`: which messages it reads, and from which threads."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime

from my_agent.icp_finder.context import Context
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


async def test_all_messages_since_last_answer_are_parsed(metadata: dict[str, Any]) -> None:
    messages = [HumanMessage("a.com"), AIMessage("?"), HumanMessage("b.com"), HumanMessage("c.com")]
    found = updates(await ingest(state(messages=messages), config(), Runtime(context=Context())))
    assert found["heard"]["sites"] == ["https://b.com", "https://c.com"]


async def test_message_answers_waiting_question(metadata: dict[str, Any]) -> None:
    asking = {"kind": "rerun"}
    found = updates(
        await ingest(state("yes please", asking=asking), config(), Runtime(context=Context()))
    )
    assert found["answer"] == {"kind": "rerun", "value": "rerun"}
    assert (found["asking"], found["unclear"]) == (None, False)


async def test_reply_without_choice_is_unclear_unless_it_has_content(
    metadata: dict[str, Any],
) -> None:
    asking = {"kind": "rerun"}
    found = updates(
        await ingest(state("hm, well", asking=asking), config(), Runtime(context=Context()))
    )
    assert (found["answer"], found["unclear"]) == (None, True)
    found = updates(
        await ingest(
            state("industries: steel", asking=asking), config(), Runtime(context=Context())
        )
    )
    assert (found["answer"], found["unclear"]) == (None, False)
    assert found["heard"]["icp"] == {"industries": ["steel"]}


async def test_structured_reply_is_parsed(metadata: dict[str, Any]) -> None:
    asking = {"kind": "confirm_icp"}
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
    assert found["heard"]["sites"] == ["https://b.com", "https://c.com"]
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
