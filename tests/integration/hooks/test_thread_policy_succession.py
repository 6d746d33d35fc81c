"""How one thread replaces another: busy, locked, in another context, concurrently, after a restart."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import policy
from tests.support.policy import NOWHERE, RUN, Member, member, policy_server
from tests.support.processes import Running

pytestmark = pytest.mark.usefixtures("each_database")

server, ana = policy.server, policy.ana


async def _resume(ana: Member, thread: str, **body: Any) -> Any:
    return await ana.post(f"/threads/{thread}/resume", body)


# --- a run in flight --------------------------------------------------------


async def test_busy_thread_locks_after_its_run_ends(ana: Member, tmp_path: Path) -> None:
    thread, morning = await ana.open(agent="sleeper"), tmp_path / "morning"
    run = await ana.run(thread, "sleeper", {"seconds": 60, "until": str(morning)})
    await ana.open(agent="sleeper")
    pending = await ana.metadata(thread)
    assert pending["status"] == "pending_lock"
    assert "locked_at" not in pending
    answer = await ana.http.post(f"/threads/{thread}/runs", json=RUN)
    assert (answer.status_code, answer.json()["status"]) == (409, "pending_lock")
    morning.touch()
    assert await ana.ended(thread, run) == "success"
    locked = await ana.get(f"/threads/{thread}")
    assert locked["metadata"]["status"] == "locked"
    assert locked["metadata"]["locked_at"]
    assert locked["values"]["slept"] == 60


async def test_busy_thread_finishes_every_accepted_run_before_it_locks(
    ana: Member, tmp_path: Path
) -> None:
    thread, morning = await ana.open(agent="sleeper"), tmp_path / "morning"
    asked = {"seconds": 60, "until": str(morning)}
    runs = [await ana.run(thread, "sleeper", asked) for _ in range(3)]
    await ana.open(agent="sleeper")
    morning.touch()
    assert [await ana.ended(thread, run) for run in runs] == ["success"] * 3
    assert await ana.policy_status(thread) == "locked"


@pytest.mark.parametrize("how", ["cancel", "rollback", "delete"])
@pytest.mark.parametrize("when", ["running", "pending"])
async def test_busy_thread_locks_however_its_run_ends(ana: Member, how: str, when: str) -> None:
    thread = await ana.open(agent="sleeper")
    later = {"after_seconds": 3600} if when == "pending" else {}
    run = await ana.run(thread, "sleeper", {"seconds": 60}, **later)
    await ana.until(thread, run, when)
    await ana.open(agent="sleeper")
    assert await ana.policy_status(thread) == "pending_lock"
    path = f"/threads/{thread}/runs/{run}"
    if how == "delete":
        assert (await ana.http.delete(path)).is_success
    else:
        action = "interrupt" if how == "cancel" else how
        await ana.post(f"{path}/cancel?wait=true&action={action}")
    await ana.ended(thread, run)
    assert await ana.policy_status(thread) == "locked"


# --- the context stays ------------------------------------------------------


async def test_resuming_a_locked_thread_creates_a_new_one(ana: Member) -> None:
    first = await ana.open("https://acme.com", title="First")
    second = await ana.open()
    answer = await ana.post(f"/threads/{first}/resume")
    assert answer["action"] == "create"
    third = answer["thread_id"]
    assert await ana.policy_statuses(first, second, third) == ["locked", "locked", "open"]
    metadata = await ana.metadata(third)
    assert metadata["context_key"] == "domain:acme.com"
    assert metadata["resumed_from"] == first
    assert "title" not in metadata
    opened = await ana.post(f"/threads/{third}/resume")
    assert opened == {"action": "resume", "thread_id": third}


async def test_thread_that_cannot_be_resumed_is_refused(server: Running, ana: Member) -> None:
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


async def test_resume_without_a_body_resumes_the_thread(ana: Member) -> None:
    """Browsers send a POST without content so."""
    thread = await ana.open()
    answer = await ana.http.post(f"/threads/{thread}/resume")
    assert answer.json() == {"action": "resume", "thread_id": thread}


async def test_administrator_resumes_a_foreign_locked_thread_in_an_own_one(
    server: Running, ana: Member
) -> None:
    thread = await ana.open()
    async with member(server, None, "t1", "tenant_admin") as admin:
        assert (await _resume(admin, thread))["action"] == "resume"
        assert (await _resume(admin, thread, website="acme.com"))["action"] == "resume"
        body = {"website": "beta.io"}
        refused = await admin.http.post(f"/threads/{thread}/resume", json=body)
        assert refused.status_code == 403
        assert await ana.policy_status(thread) == "open"
        newer = await ana.open()
        made = await _resume(admin, thread)
        assert (await ana.http.get(f"/threads/{made['thread_id']}")).status_code == 404
        assert await ana.policy_status(newer) == "open"


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
async def test_resuming_with_a_new_context_locks_the_thread_and_opens_another(
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


async def test_resuming_with_an_equivalent_context_keeps_the_thread(ana: Member) -> None:
    thread = await ana.open()
    for website in ("acme.com", "HTTPS://shop.Acme.com:443/x"):
        answer = await _resume(ana, thread, website=website)
        assert answer == {"action": "resume", "thread_id": thread}
    for nothing in (None, "", " "):
        assert await _resume(ana, thread, website=nothing, rule_name=nothing) == answer
    assert len(await ana.found()) == 1


async def test_resuming_into_a_context_locks_the_open_thread_there(ana: Member) -> None:
    there, bystander = await ana.open("beta.io"), await ana.open("gamma.org")
    moving = await ana.open("acme.com")
    made = await _resume(ana, moving, website="beta.io")
    threads = (there, bystander, moving, made["thread_id"])
    assert await ana.policy_statuses(*threads) == ["locked", "open", "locked", "open"]
    reasons = [(await ana.metadata(thread))["reason"] for thread in (there, moving)]
    assert reasons == ["superseded", "context_changed"]


async def test_resuming_a_locked_thread_can_change_the_context(ana: Member) -> None:
    first, second = await ana.open(), await ana.open()
    made = await _resume(ana, first, website="beta.io")
    assert await ana.policy_statuses(first, second, made["thread_id"]) == ["locked", "open", "open"]
    assert (await ana.metadata(first))["reason"] == "superseded"


async def test_resuming_a_busy_thread_with_a_new_context_locks_it_after_its_run(
    ana: Member,
) -> None:
    thread = await ana.open(agent="sleeper")
    run = await ana.run(thread, "sleeper", {}, after_seconds=3600)
    made = await _resume(ana, thread, website="beta.io")
    assert await ana.policy_statuses(thread, made["thread_id"]) == ["pending_lock", "open"]
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
async def test_resuming_with_an_invalid_context_is_422_and_changes_nothing(
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
    assert await ana.policy_status(thread) == "open"
    assert len(await ana.found()) == 1


async def test_resuming_a_foreign_thread_is_404_like_a_missing_one(
    server: Running, ana: Member
) -> None:
    mine = await ana.open()
    body = {"website": "beta.io"}
    async with member(server) as bob, member(server, ana.name, "t2", "tenant_admin") as namesake:
        for other in (bob, namesake):
            foreign = await other.http.post(f"/threads/{mine}/resume", json=body)
            absent = await other.http.post(f"/threads/{NOWHERE}/resume", json=body)
            assert foreign.status_code == absent.status_code == 404
            assert foreign.text.replace(mine, "") == absent.text.replace(NOWHERE, "")
            assert await other.found() == []
    assert await ana.policy_status(mine) == "open"


# --- races and restarts -----------------------------------------------------


async def test_concurrent_resumes_lock_the_old_thread_once(server: Running, ana: Member) -> None:
    thread = await ana.open()
    answers = await asyncio.gather(
        *(_resume(ana, thread, website="beta.io") for _ in range(20)),
        *(_resume(ana, thread, website="gamma.org") for _ in range(20)),
    )
    # The first request of a context opens a thread, and the others get it.
    assert [answer["action"] for answer in answers].count("create") == 2
    made = [answer["thread_id"] for answer in answers]
    for half in (made[:20], made[20:]):
        assert len(set(half)) == 1
    assert await ana.policy_statuses(made[0], made[20]) == ["open", "open"]
    old = await ana.metadata(thread)
    assert (old["status"], old["reason"]) == ("locked", "context_changed")
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    locked = [
        line
        for line in lines
        if line.get("action") == "thread_locked" and line["thread_id"] == thread
    ]
    assert [(line["reason"], line["by"] in made) for line in locked] == [("context_changed", True)]


async def test_concurrent_resumes_and_creations_leave_one_open_thread_per_context(
    ana: Member,
) -> None:
    thread = await ana.open()
    await asyncio.gather(
        *(_resume(ana, thread, website="beta.io") for _ in range(10)),
        *(ana.open("beta.io") for _ in range(10)),
        *(ana.open("acme.com") for _ in range(10)),
    )
    rows = await ana.found(metadata={"status": "open"})
    keys = sorted(row["metadata"]["context_key"] for row in rows)
    assert keys == ["domain:acme.com", "domain:beta.io"]


async def test_one_of_fifty_threads_created_at_once_stays_open(ana: Member) -> None:
    threads = await asyncio.gather(*(ana.open() for _ in range(50)))
    found = sorted(await ana.policy_statuses(*threads))
    assert found == ["locked"] * 49 + ["open"]


async def test_concurrent_runs_and_creations_leave_one_open_thread_and_whole_runs(
    ana: Member,
) -> None:
    async def run_on(thread: str) -> tuple[str, httpx.Response]:
        return thread, await ana.http.post(f"/threads/{thread}/runs/wait", json=RUN)

    async def open_and_run() -> tuple[str, httpx.Response]:
        return await run_on(await ana.open())

    answers = await asyncio.gather(*(open_and_run() for _ in range(50)))
    accepted = 0
    for thread, answer in answers:
        runs = await ana.get(f"/threads/{thread}/runs")
        if answer.status_code == 200:
            accepted += 1
            assert answer.json()["value"] == "a"
            assert [run["status"] for run in runs] == ["success"]
        else:
            assert answer.status_code == 409
            assert answer.json()["error"] == "thread_locked"
            assert runs == []
    # The thread that was created last is never locked.
    assert accepted >= 1
    found = sorted([await ana.policy_status(thread) for thread, _ in answers])
    assert found == ["locked"] * 49 + ["open"]


async def test_policy_survives_a_killed_process(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("restart")
    with policy_server(folder) as server:
        async with member(server, "ana") as ana:
            locked, thread = await ana.open("beta.io"), await ana.open(agent="sleeper")
            await ana.open("beta.io")
            morning = folder / "morning"
            asked = {"seconds": 60, "until": str(morning)}
            run = await ana.run(thread, "sleeper", asked)
            await ana.until(thread, run, "running")
            await ana.open(agent="sleeper")
            server.process.kill()
            server.process.wait()
    with policy_server(folder) as server:
        async with member(server, "ana") as ana:
            answer = await ana.http.post(f"/threads/{locked}/runs", json=RUN)
            assert (answer.status_code, answer.json()["status"]) == (409, "locked")
            answer = await ana.http.post(f"/threads/{thread}/runs", json=RUN)
            assert answer.status_code == 409
            morning.touch()
            assert await ana.ended(thread, run) == "success"
            assert await ana.policy_status(thread) == "locked"
