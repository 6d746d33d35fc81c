"""A new thread in place of another: of a locked one, or of one whose user changes the context."""

import asyncio
import json
from typing import Any

import pytest

from tests.support import policy
from tests.support.policy import NOWHERE, RUN, Member, member
from tests.support.processes import Running

server, ana = policy.server, policy.ana


async def _resume(ana: Member, thread: str, **body: Any) -> Any:
    return await ana.post(f"/threads/{thread}/resume", body)


# --- the context stays ------------------------------------------------------


async def test_a_locked_thread_is_resumed_in_a_new_one(ana: Member) -> None:
    first = await ana.open("https://acme.com", title="First")
    second = await ana.open()
    answer = await ana.post(f"/threads/{first}/resume")
    assert answer["action"] == "create"
    third = answer["thread_id"]
    assert await ana.standings(first, second, third) == ["locked", "locked", "open"]
    metadata = await ana.metadata(third)
    assert metadata["context_key"] == "domain:acme.com"
    assert metadata["resumed_from"] == first
    assert "title" not in metadata
    opened = await ana.post(f"/threads/{third}/resume")
    assert opened == {"action": "resume", "thread_id": third}


async def test_what_cannot_be_resumed(server: Running, ana: Member) -> None:
    mine = await ana.open()
    await ana.open()
    async with member(server) as bob:
        foreign = await bob.http.post(f"/threads/{mine}/resume")
        absent = await bob.http.post(f"/threads/{NOWHERE}/resume")
        assert foreign.status_code == absent.status_code == 404
        assert foreign.text.replace(mine, "") == absent.text.replace(NOWHERE, "")
        assert await bob.found() == []
    assert (await ana.http.post("/threads/nonsense/resume")).status_code == 422
    other = await ana.thread(agent="interrupt")
    answer = await ana.http.post(f"/threads/{other}/resume")
    assert (answer.status_code, answer.json()["error"]) == (409, "no_thread_policy")


async def test_without_a_body_it_is_the_same(ana: Member) -> None:
    """As browsers post where there is nothing to say."""
    thread = await ana.open()
    answer = await ana.http.post(f"/threads/{thread}/resume")
    assert answer.json() == {"action": "resume", "thread_id": thread}


async def test_an_administrator_resumes_anothers_thread_in_one_of_their_own(
    server: Running, ana: Member
) -> None:
    thread = await ana.open()
    async with member(server, None, "t1", "tenant_admin") as admin:
        assert (await _resume(admin, thread))["action"] == "resume"
        assert (await _resume(admin, thread, website="acme.com"))["action"] == "resume"
        body = {"website": "beta.io"}
        refused = await admin.http.post(f"/threads/{thread}/resume", json=body)
        assert refused.status_code == 403
        assert await ana.standing(thread) == "open"
        newer = await ana.open()
        made = await _resume(admin, thread)
        assert (await ana.http.get(f"/threads/{made['thread_id']}")).status_code == 404
        assert await ana.standing(newer) == "open"


# --- the context changes ----------------------------------------------------


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"website": "https://www.beta.io/jobs"}, "domain:beta.io"),
        ({"rule_name": "Big ones"}, "icp:Big ones#44136fa355b3678a"),
        ({"payload": {"size": 50}}, "icp:Default ICP#"),
    ],
    ids=str,
)
async def test_an_open_thread_locks_and_one_of_the_new_context_opens(
    ana: Member, body: dict[str, Any], key: str
) -> None:
    thread = await ana.open(title="First")
    await ana.post(f"/threads/{thread}/runs/wait", RUN)
    before = await ana.get(f"/threads/{thread}")
    made = await _resume(ana, thread, **body)
    assert made["action"] == "create"
    old, new = await ana.metadata(thread), await ana.metadata(made["thread_id"])
    assert (old["status"], old["reason"]) == ("locked", "context_changed")
    assert old["context_key"] == "domain:acme.com"
    assert (await ana.get(f"/threads/{thread}"))["updated_at"] == before["updated_at"]
    assert new["status"] == "open"
    assert new["context_key"].startswith(key)
    assert new["resumed_from"] == thread
    assert {name: new[name] for name in body} == body
    assert "title" not in new
    answer = await ana.http.post(f"/threads/{thread}/runs", json=RUN)
    assert (answer.status_code, answer.json()["error"]) == (409, "thread_locked")
    await ana.post(f"/threads/{made['thread_id']}/runs/wait", RUN)


async def test_the_same_context_in_other_words_goes_on(ana: Member) -> None:
    thread = await ana.open()
    for website in ("acme.com", "HTTPS://shop.Acme.com:443/x"):
        answer = await _resume(ana, thread, website=website)
        assert answer == {"action": "resume", "thread_id": thread}
    assert await _resume(ana, thread, website=None) == answer
    assert len(await ana.found()) == 1


async def test_the_rule_holds_in_the_new_context_too(ana: Member) -> None:
    there, bystander = await ana.open("beta.io"), await ana.open("gamma.org")
    moving = await ana.open("acme.com")
    made = await _resume(ana, moving, website="beta.io")
    threads = (there, bystander, moving, made["thread_id"])
    assert await ana.standings(*threads) == ["locked", "open", "locked", "open"]
    reasons = [(await ana.metadata(thread))["reason"] for thread in (there, moving)]
    assert reasons == ["superseded", "context_changed"]


async def test_a_locked_thread_is_followed_by_one_of_another_context(ana: Member) -> None:
    first, second = await ana.open(), await ana.open()
    made = await _resume(ana, first, website="beta.io")
    assert await ana.standings(first, second, made["thread_id"]) == ["locked", "open", "open"]
    assert (await ana.metadata(first))["reason"] == "superseded"


async def test_a_thread_at_work_finishes_first(ana: Member) -> None:
    thread = await ana.open(agent="sleeper")
    run = await ana.run(thread, "sleeper", {}, after_seconds=3600)
    made = await _resume(ana, thread, website="beta.io")
    assert await ana.standings(thread, made["thread_id"]) == ["pending_lock", "open"]
    await ana.post(f"/threads/{thread}/runs/{run}/cancel")
    metadata = await ana.metadata(thread)
    assert (metadata["status"], metadata["reason"]) == ("locked", "context_changed")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"website": "not a website"}, "website"),
        ({"rule_name": "x" * 101}, "100"),
        ({"website": 7}, "website"),
        ({"agent": "sleeper"}, "agent"),
        ({"status": "open"}, "status"),
        (["acme.com"], "body"),
        (None, "body"),
    ],
    ids=str,
)
async def test_a_context_that_makes_no_sense_changes_nothing(
    ana: Member, body: Any, problem: str
) -> None:
    thread = await ana.open()
    answer = await ana.http.post(
        f"/threads/{thread}/resume",
        content=json.dumps(body),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 422
    assert problem in answer.json()["detail"]
    assert await ana.standing(thread) == "open"
    assert len(await ana.found()) == 1


async def test_nobody_leaves_anothers_thread(server: Running, ana: Member) -> None:
    mine = await ana.open()
    body = {"website": "beta.io"}
    async with member(server) as bob, member(server, ana.name, "t2", "tenant_admin") as namesake:
        for other in (bob, namesake):
            foreign = await other.http.post(f"/threads/{mine}/resume", json=body)
            absent = await other.http.post(f"/threads/{NOWHERE}/resume", json=body)
            assert foreign.status_code == absent.status_code == 404
            assert foreign.text.replace(mine, "") == absent.text.replace(NOWHERE, "")
            assert await other.found() == []
    assert await ana.standing(mine) == "open"


async def test_of_many_at_once_one_stays_open_and_the_old_one_locks_once(
    server: Running, ana: Member
) -> None:
    thread = await ana.open()
    answers = await asyncio.gather(
        *(_resume(ana, thread, website="beta.io") for _ in range(20)),
        *(_resume(ana, thread, website="gamma.org") for _ in range(20)),
    )
    assert {answer["action"] for answer in answers} == {"create"}
    made = [answer["thread_id"] for answer in answers]
    for half in (made[:20], made[20:]):
        assert sorted(await ana.standings(*half)) == ["locked"] * 19 + ["open"]
    old = await ana.metadata(thread)
    assert (old["status"], old["reason"]) == ("locked", "context_changed")
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    locked = [
        line
        for line in lines
        if line.get("action") == "thread_locked" and line["thread_id"] == thread
    ]
    assert [(line["reason"], line["by"] in made) for line in locked] == [("context_changed", True)]


async def test_changing_and_opening_at_once_leave_one_open_of_each_context(ana: Member) -> None:
    thread = await ana.open()
    await asyncio.gather(
        *(_resume(ana, thread, website="beta.io") for _ in range(10)),
        *(ana.open("beta.io") for _ in range(10)),
        *(ana.open("acme.com") for _ in range(10)),
    )
    rows = await ana.found(metadata={"status": "open"})
    keys = sorted(row["metadata"]["context_key"] for row in rows)
    assert keys == ["domain:acme.com", "domain:beta.io"]
