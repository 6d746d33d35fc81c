"""Politeness: what a website's robots.txt allows, and the time between two requests to it."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import httpx
from protego import Protego

from my_agent import parsing
from my_agent.web.fetch import SiteRefused, SiteUnreadable, get
from threadhold.addresses import Network

AGENT = "Threadhold"
# Sizes and times are those of RFC 9309, sections 2.4 and 2.5, or stricter.
ROBOTS_BYTES = 500 * 1024
ROBOTS_SECONDS = 10.0
KEPT_SECONDS = 3600.0
UNREACHABLE_SECONDS = 60.0
KEPT_HOSTS = 1000
# A longer delay than a website may ask for.
MAX_DELAY_SECONDS = 10.0


@dataclass(frozen=True)
class Rules:
    """What a website says about one address.

    Attributes:
        allow: whether the address may be read.
        delay: time between two requests that the website asks for, in seconds.
        is_reachable: whether the website answered.
    """

    allow: bool = True
    delay: float = 0.0
    is_reachable: bool = True


@dataclass(frozen=True)
class _Robots:
    """The robots.txt of a website, until it is asked for again, on the monotonic clock."""

    text: str
    until: float
    is_reachable: bool = True


_lock = threading.Lock()
_robots: OrderedDict[str, _Robots] = OrderedDict()
# Lookups in progress. A task belongs to its event loop.
_lookups: dict[tuple[int, str], asyncio.Task[_Robots]] = {}
_next: OrderedDict[str, float] = OrderedDict()


async def rules(url: str, allowed: Sequence[Network]) -> Rules:
    """Return what the website of an address says about it.

    Args:
        url: the address.
        allowed: private networks whose pages may be read.
    """
    known = await _known(url, allowed)
    if not known.is_reachable or not known.text.strip():
        # While the website is down, nothing is allowed; without rules, all is.
        return Rules(allow=known.is_reachable, is_reachable=known.is_reachable)
    try:
        return await parsing.run(judge, known.text, url, seconds=ROBOTS_SECONDS)
    except parsing.Unreadable:
        return Rules(allow=False)


def judge(text: str, url: str) -> Rules:
    """Return what a robots.txt says about an address; for a worker process."""
    robots = _parsed(text)
    delay = min(float(robots.crawl_delay(AGENT) or 0.0), MAX_DELAY_SECONDS)
    return Rules(robots.can_fetch(url, AGENT), delay)


# The pages of a website are read one after the other.
_parsed = lru_cache(16)(Protego.parse)


async def _known(url: str, allowed: Sequence[Network]) -> _Robots:
    site = origin(url)
    with _lock:
        known = _robots.get(site)
        if known is not None and known.until > time.monotonic():
            return known
    key = (id(asyncio.get_running_loop()), site)
    task = _lookups.get(key)
    if task is None:
        task = _lookups[key] = asyncio.create_task(_ask(site, allowed))
        task.add_done_callback(lambda done: _lookups.pop(key, None))
    # Another page may wait for the same lookup when this one is cancelled.
    return await asyncio.shield(task)


async def _ask(site: str, allowed: Sequence[Network]) -> _Robots:
    try:
        async with asyncio.timeout(ROBOTS_SECONDS):
            answer = await get(f"{site}/robots.txt", allowed, kinds=(), max_bytes=ROBOTS_BYTES)
        text, kept, is_reachable = answer.body.decode("utf-8", "replace"), KEPT_SECONDS, True
    except SiteRefused:
        # The page will be refused for the same reason, and that is the reason to show.
        text, kept, is_reachable = "", UNREACHABLE_SECONDS, True
    except (SiteUnreadable, TimeoutError) as error:
        status = error.status if isinstance(error, SiteUnreadable) else None
        is_reachable = status is not None and 400 <= status < 500
        text = ""
        kept = KEPT_SECONDS if is_reachable else UNREACHABLE_SECONDS
    found = _Robots(text, time.monotonic() + kept, is_reachable)
    with _lock:
        _robots[site] = found
        _robots.move_to_end(site)
        while len(_robots) > KEPT_HOSTS:
            _robots.popitem(last=False)
    return found


async def wait_turn(url: str, delay: float) -> None:
    """Wait until the website of an address may be asked again.

    Args:
        url: the address.
        delay: time between two requests, in seconds.
    """
    if delay <= 0:
        return
    site = origin(url)
    with _lock:
        moment = time.monotonic()
        turn = max(moment, _next.get(site, moment))
        _next[site] = turn + delay
        _next.move_to_end(site)
        while len(_next) > KEPT_HOSTS:
            _next.popitem(last=False)
    await asyncio.sleep(turn - moment)


def origin(url: str) -> str:
    """Return the scheme, host and port of an address, such as `https://acme.com`."""
    parsed = httpx.URL(url)
    return str(parsed.copy_with(raw_path=b"", fragment=None, userinfo=b"")).rstrip("/")
