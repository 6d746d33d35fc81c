"""`kill -9` in mid-token: every client gets each event once, then the next attempt, then the end."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.chaos.followers import Follower, Got, Javascript, Threads
from tests.chaos.victim import Victim, write_config
from tests.support import databases

pytestmark = pytest.mark.usefixtures("each_database", "packages")

TOKENS, DELAY = 40, 0.05
DAY = 86_400.0
# Seconds. The servers of these tests have another length of a lease than 15 s.
LEASE = 4.0
NEVER = 600.0
# Of processes on one machine, which do not wait for its end.
LONG_LEASE = 60.0
# When a client must see the next token, beside the length of a lease, on a busy machine. How soon it
# does on a quiet one is a row of `make bench`.
OWED = 30.0
# Tokens that are sent before the kill, however late a client comes.
HELD = 10


def started(victim: Victim) -> tuple[str, str]:
    """Start a run that streams tokens in one step."""
    thread = victim.thread()
    gate = victim.folder / "gate"
    gate.write_text(str(HELD))
    asked = {"n": TOKENS, "delay": DELAY, "mode": "custom", "gate": str(gate)}
    return thread, victim.run(
        thread, "tokens", asked, stream_mode=["custom"], stream_resumable=True
    )


def assert_whole(got: Sequence[Got]) -> None:
    """Check the events of a client that began at the beginning and met one kill."""
    kinds = [(each.what, each.number) for each in got]
    again = kinds.index(("attempt", 2))
    seen = again - kinds.index(("token", 0))
    assert kinds[again - seen : again] == [("token", i) for i in range(seen)]
    assert [each for each in kinds[again:] if each[0] == "token"] == [
        ("token", i) for i in range(TOKENS)
    ]
    assert ("attempt", 2) not in kinds[again + 1 :]
    assert not any(what == "error" for what, _ in kinds)


def assert_in_order(got: Sequence[Got]) -> None:
    """Check the positions in the log: none is repeated, and none is missing between two."""
    places = [tuple(map(int, each.place.split("-"))) for each in got]
    for (epoch, number), (next_epoch, next_number) in pairwise(places):
        assert next_epoch >= epoch
        # A new attempt continues after the last stored event, which the client may have passed.
        assert next_number <= number + 1
        assert next_epoch > epoch or next_number == number + 1


async def followed(
    clients: Sequence[Follower], gate: Path, kill: Callable[[], None], then: Callable[[], None]
) -> float:
    """Follow, kill the server in mid-token, and go on to the end of the run.

    Returns:
        The seconds from the kill until the last client had its next token.
    """
    async with asyncio.TaskGroup() as group:
        for each in clients:
            group.create_task(each.follow())
        while min(each.tokens for each in clients) < 5:
            await asyncio.sleep(0.01)
        before = [each.tokens for each in clients]
        killed = time.monotonic()
        await asyncio.to_thread(kill)
        gate.write_text(str(TOKENS))
        await asyncio.to_thread(then)
    assert all(each.tokens > seen for each, seen in zip(clients, before, strict=True))
    return max(_next_token(each.got) for each in clients) - killed


def _next_token(got: Sequence[Got]) -> float:
    again = next(at for at, each in enumerate(got) if (each.what, each.number) == ("attempt", 2))
    return next(each.at for each in got[again:] if each.what == "token")


async def assert_resumable(
    clients: Sequence[Follower], urls: Sequence[str], thread: str, run: str
) -> None:
    """Check that the log is whole, and that each client can continue in it."""
    whole = Follower(urls, thread, run)
    await whole.follow()
    assert_whole(whole.got)
    first = number(whole.got[0])
    assert [*map(number, whole.got)] == [*range(first, first + len(whole.got))]
    for client in clients:
        await resumed(client, partial(type(client), urls, thread, run), tokens(whole.got))


async def resumed(
    client: Follower, again: Callable[[str], Follower], log: Sequence[tuple[int, int | None]]
) -> None:
    """Continue after the third token of a client: exactly the later tokens come."""
    third = [each for each in client.got if each.what == "token"][2]
    found = again(third.place)
    await found.follow()
    assert tokens(found.got) == [each for each in log if each[0] > number(third)]
    assert ("attempt", 2) in [(each.what, each.number) for each in found.got]
    assert found.got[-1][:3] == client.got[-1][:3]


def number(event: Got) -> int:
    """Return the number of an event in its thread."""
    return int(event.place.rpartition("-")[2]) if "-" in event.place else int(event.place) >> 22


def tokens(got: Sequence[Got]) -> list[tuple[int, int | None]]:
    """Return the number in its thread of each token, and the token."""
    return [(number(each), each.number) for each in got if each.what == "token"]


def let_a_day_pass(victim: Victim) -> None:
    """Let everything have happened a day earlier, while no server works."""
    for table, column in (
        ("event_segments", "created_at"),
        ("runs", "created_at"),
        ("runs", "updated_at"),
        ("threads", "created_at"),
        ("threads", "updated_at"),
    ):
        move(victim, table, column, DAY)


def move(victim: Victim, table: str, column: str, seconds: float, where: str = "TRUE") -> None:
    earlier = (
        f"{column} - interval '{seconds} seconds'"
        if databases.kind() == "postgresql"
        else f"{column} - {int(seconds * 1e6)}"
    )
    victim.sql(f"UPDATE {table} SET {column} = {earlier} WHERE {where}")


@pytest.mark.timeout(400)
async def test_clients_continue_after_a_restart_and_after_a_day(victim: Victim) -> None:
    """Nobody waits for the lease of a server that has ended on the same machine."""
    await asyncio.to_thread(victim.start, lease=NEVER)
    old, _ = started(victim)
    thread, run = started(victim)
    urls = [victim.url]
    kinds = (Follower, Follower, Threads, Javascript)
    begins = {Threads: "0"}
    clients = [each(urls, thread, run, begins.get(each, "-1")) for each in kinds]
    waited = await followed(
        clients, victim.folder / "gate", victim.kill, lambda: victim.start(lease=NEVER)
    )
    print(f"restart: {waited:.2f} s from the kill to the next token")
    assert waited < NEVER / 6
    for each in clients:
        assert_whole(each.got)
    for each in clients:
        if not isinstance(each, Threads):
            assert_in_order(each.got)
    victim.await_(lambda: victim.get(f"/threads/{old}")["status"] == "idle")
    await asyncio.to_thread(victim.kill)
    let_a_day_pass(victim)
    # These events are older than the retention of three days, and go.
    move(victim, "event_segments", "created_at", 3 * DAY, f"thread_id = '{old}'")
    await asyncio.to_thread(victim.start, lease=NEVER)
    kept = "SELECT count(*) FROM event_segments WHERE thread_id = ? AND events IS NOT NULL"
    await asyncio.to_thread(victim.await_, lambda: victim.sql(kept, old) == [(0,)])
    await assert_resumable(clients, urls, thread, run)
    assert victim.findings() == []


@pytest.mark.only("postgresql")
@pytest.mark.parametrize(
    ("wire", "machine"),
    [
        ("Postgres alone", "one machine"),
        ("Postgres alone", "two machines"),
        ("Redis", "two machines"),
    ],
)
@pytest.mark.timeout(400)
async def test_clients_continue_at_another_process(
    tmp_path: Path, redis_url: str, wire: str, machine: str
) -> None:
    """A client follows at the killed process, the others at the one that is left."""
    lease = LONG_LEASE if machine == "one machine" else LEASE
    with ExitStack() as stack:
        pair = list(processes(stack, tmp_path, redis_url if wire == "Redis" else None, machine))
        for each in pair:
            await asyncio.to_thread(each.start, lease=lease)
        thread, run = started(pair[0])
        await asyncio.to_thread(
            pair[0].await_, lambda: pair[0].sql("SELECT 1 FROM runs WHERE claimed_by IS NOT NULL")
        )
        [(owner,)] = pair[0].sql("SELECT claimed_by FROM runs")
        # The name of a process begins with its id.
        dying, left = sorted(pair, key=lambda each: not owner.startswith(f"{each.pid}-"))
        both, one = [dying.url, left.url], [left.url]
        clients = [
            Follower(both, thread, run),
            Follower(one, thread, run),
            Threads(both, thread, run, "0"),
            Threads(one, thread, run, "0"),
            Javascript(one, thread, run),
        ]
        waited = await followed(clients, pair[0].folder / "gate", dying.kill, lambda: None)
        print(f"{wire}, {machine}: {waited:.2f} s from the kill to the next token")
        if machine == "one machine":
            # The others look after a third of the lease, which does not have to end.
            assert waited < lease / 3 + OWED < lease
        else:
            assert waited < lease + OWED
        for each in clients:
            assert_whole(each.got)
            if not isinstance(each, Threads):
                assert_in_order(each.got)
        await asyncio.to_thread(left.kill)
        let_a_day_pass(left)
        await asyncio.to_thread(left.start)
        await assert_resumable(clients, one, thread, run)


def processes(
    stack: ExitStack, folder: Path, redis_url: str | None, machine: str
) -> Iterator[Victim]:
    """Make two servers of one database, perhaps as if on different machines."""
    for name in ("first", "second"):
        place = folder / name
        place.mkdir()
        env = {
            "LANGGRAPH_JSON": str(write_config(place)),
            "DATABASE_URL": databases.url(folder / "pair.db"),
            "SHUTDOWN_GRACE_SECONDS": "0",
            **({"REDIS_URL": redis_url} if redis_url else {}),
            **({"TMPDIR": str(place)} if machine == "two machines" else {}),
        }
        victim = Victim(place, env)
        stack.callback(victim.close)
        # Both look at the same database.
        victim.database = folder / "pair.db"
        yield victim
