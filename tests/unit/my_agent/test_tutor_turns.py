"""Checks without a model: tenants take turns, and a run's checks take a limited time."""

import asyncio
import threading

import pytest

from my_agent.tutor import checks, turns
from my_agent.tutor.corrections import Issue

MISTAKE = "He go to the market yesterday and buyed a lots of apple. "


@pytest.mark.parametrize(
    "text", ["", "short", MISTAKE * 60, "x" * 3500, "word " * 700, "a\n" * 1500]
)
def test_pieces_are_short_and_make_up_the_text(text: str) -> None:
    found = list(turns.pieces(text))
    assert "".join(piece for _, piece in found) == text
    assert all(text[start:].startswith(piece) for start, piece in found)
    assert max(len(piece) for _, piece in found) <= turns.PIECE


async def test_mistakes_of_all_pieces_have_their_positions_in_the_text() -> None:
    text = MISTAKE * 60
    until = asyncio.get_running_loop().time() + 60
    done = await turns.check("a", text, until)
    assert done.complete
    assert all(text[each["start"] : each["end"]] == each["original"] for each in done.issues)
    assert sum(each["original"] == "buyed" for each in done.issues) == 60


@pytest.mark.parametrize(
    ("text", "is_english"), [("Olá, tudo bem com você?", False), ("All is well.", True)]
)
async def test_text_in_another_language_does_not_count_as_checked(
    text: str, is_english: bool
) -> None:
    until = asyncio.get_running_loop().time() + 60
    assert await turns.check("a", text, until) == turns.Found([], True, is_english)


async def test_tenant_waits_for_one_piece_of_another_tenant_and_not_for_its_backlog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    free = threading.Event()

    def check(text: str) -> list[Issue]:
        free.wait(30)
        order.append(text[:3])
        return []

    monkeypatch.setattr(checks, "judge", check)
    until = asyncio.get_running_loop().time() + 60
    backlog = [asyncio.create_task(turns.check("bad", "bad " * 250, until)) for _ in range(90)]
    await asyncio.sleep(0.05)
    other = asyncio.create_task(turns.check("good", "good", until))
    await asyncio.sleep(0.05)
    free.set()
    await asyncio.gather(other, *backlog)
    assert order.index("goo") <= 2
    assert order.count("bad") == 90


async def test_checks_end_at_the_deadline_with_what_they_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = threading.Event()
    first: Issue = {
        "type": "grammar",
        "start": 0,
        "end": 1,
        "original": "b",
        "replacement": "B",
        "message": "",
        "sources": ["harper"],
    }
    found = [[first]]

    def check(text: str) -> list[Issue]:
        if found:
            return found.pop()
        ended.wait(30)
        return []

    monkeypatch.setattr(checks, "judge", check)
    try:
        until = asyncio.get_running_loop().time() + 3
        assert await turns.check("slow", "bad " * 1000, until) == turns.Found([first], False, True)
    finally:
        ended.set()
