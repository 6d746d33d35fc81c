"""Offline: play with a database of its own, without network and model."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from my_agent.icp_finder import graph as _graph  # noqa: F401  # loads all modules that read websites
from my_agent.icp_finder.model import Site
from my_agent.icp_finder.search import website
from my_agent.tables import tables
from my_agent.web.fetch import SiteUnreadable
from my_agent.web.pages import Page
from my_agent.web.sites import domain

ABOUT = "A wholesaler of chilled food for shops, with a cold chain."
_MODEL = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")


@contextmanager
def offline() -> Iterator[None]:
    """Replace the database and the reading of websites, and hide the settings of a model."""
    with (
        _quiet(),
        tempfile.TemporaryDirectory(prefix="bench-") as scratch,
        environment(dict.fromkeys(_MODEL), ICP_WEB_SEARCH="false"),
        _replaced("read_site", website.read_site, _site),
        _replaced("read_page", website.read_page, _page),
    ):
        tables.use(f"sqlite:///{scratch}/data.db")
        try:
            yield
        finally:
            tables.close()
            tables.use(None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep warnings about refused calls out of the figures."""
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def environment(several: dict[str, str | None] | None = None, **values: str) -> Iterator[None]:
    """Set environment variables, or remove those that are None, and restore them at the end."""
    wanted: dict[str, str | None] = {**(several or {}), **values}
    kept = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(kept)


def known_site(name: str, about: str = ABOUT) -> Site:
    """Return a website as if it had been read."""
    return {"website": f"https://{name}", "domain": name, "name": name, "about": about}


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _replaced(name: str, old: object, new: object) -> Iterator[None]:
    """Replace a function in each module that has imported it."""
    loaded = [each for key, each in sys.modules.items() if key.startswith("my_agent.")]
    found = [each for each in loaded if each.__dict__.get(name) is old]
    for module in found:
        setattr(module, name, new)
    try:
        yield
    finally:
        for module in found:
            setattr(module, name, old)


async def _site(address: str) -> Site:
    return known_site(domain(address))


async def _page(address: str) -> Page:
    raise SiteUnreadable(f"{domain(address)} could not be read.")
