"""Politeness: what a website's robots.txt allows, and the time between two requests to it."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import httpx
from protego import Protego

from contexts.addresses import Network
from my_agent.web.fetch import SiteRefused, SiteUnreadable, get

AGENT = "Threadhold"
# Sizes and times are those of RFC 9309, sections 2.4 and 2.5, or stricter.
ROBOTS_BYTES = 500 * 1024
ROBOTS_SECONDS = 10.0
KEPT_SECONDS = 3600.0
UNREACHABLE_SECONDS = 60.0
KEPT_HOSTS = 1000
# A longer delay than a website may ask for.
MAX_DELAY_SECONDS = 10.0
_NOTHING = "User-agent: *\nDisallow: /"


@dataclass(frozen=True)
class Rules:
    """What a website allows.

    Attributes:
        robots: its rules.
        until: when they are asked for again, on the monotonic clock.
        is_reachable: whether the website answered.
    """

    robots: Protego
    until: float
    is_reachable: bool = True

    def allow(self, url: str) -> bool:
        """Return whether an address may be read."""
        return self.robots.can_fetch(url, AGENT)

    @property
    def delay(self) -> float:
        """The time between two requests that the website asks for, in seconds."""
        return min(float(self.robots.crawl_delay(AGENT) or 0.0), MAX_DELAY_SECONDS)


_lock = threading.Lock()
_rules: OrderedDict[str, Rules] = OrderedDict()
# Lookups in progress. A task belongs to its event loop.
_lookups: dict[tuple[int, str], asyncio.Task[Rules]] = {}
_next: OrderedDict[str, float] = OrderedDict()


async def rules(url: str, allowed: Sequence[Network]) -> Rules:
    """Return what the website of an address allows.

    Args:
        url: the address.
        allowed: private networks whose pages may be read.
    """
    site = origin(url)
    with _lock:
        known = _rules.get(site)
        if known is not None and known.until > time.monotonic():
            return known
    key = (id(asyncio.get_running_loop()), site)
    task = _lookups.get(key)
    if task is None:
        task = _lookups[key] = asyncio.create_task(_ask(site, allowed))
        task.add_done_callback(lambda done: _lookups.pop(key, None))
    # Another page may wait for the same lookup when this one is cancelled.
    return await asyncio.shield(task)


async def _ask(site: str, allowed: Sequence[Network]) -> Rules:
    try:
        async with asyncio.timeout(ROBOTS_SECONDS):
            answer = await get(f"{site}/robots.txt", allowed, kinds=(), max_bytes=ROBOTS_BYTES)
        text, kept, is_reachable = answer.body.decode("utf-8", "replace"), KEPT_SECONDS, True
    except SiteRefused:
        # The page will be refused for the same reason, and that is the reason to show.
        text, kept, is_reachable = "", UNREACHABLE_SECONDS, True
    except (SiteUnreadable, TimeoutError) as error:
        status = error.status if isinstance(error, SiteUnreadable) else None
        # Without such a file all is allowed; while the website is down, nothing is.
        is_reachable = status is not None and 400 <= status < 500
        text = "" if is_reachable else _NOTHING
        kept = KEPT_SECONDS if is_reachable else UNREACHABLE_SECONDS
    found = Rules(Protego.parse(text), time.monotonic() + kept, is_reachable)
    with _lock:
        _rules[site] = found
        _rules.move_to_end(site)
        while len(_rules) > KEPT_HOSTS:
            _rules.popitem(last=False)
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
