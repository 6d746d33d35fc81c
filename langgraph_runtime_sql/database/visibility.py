"""Visibility: the rows that a transaction may see."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Protocol


class Visibility(Protocol):
    """A caller's scope, as `tenancy.scope` decides it. Only Postgres enforces it."""

    @property
    def tenant(self) -> str | None:
        """The one tenant whose rows are visible; None if there is not exactly one."""

    @property
    def turn(self) -> str | None:
        """The tenant whose turn the work takes; None: the platform's."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that the database's policies compare with, by name."""


_chosen: ContextVar[Visibility | None] = ContextVar("visibility", default=None)


@contextmanager
def chosen(visibility: Visibility) -> Iterator[None]:
    """Let the task's transactions in the block see these rows, whatever its scope is."""
    token = _chosen.set(visibility)
    try:
        yield
    finally:
        _chosen.reset(token)


def of_task(scope: Callable[[], Visibility]) -> Visibility:
    """Return the chosen visibility of the calling task; without one that of its scope."""
    return _chosen.get() or scope()


class NoRows:
    """The scope of a transaction that sees no tenant's rows."""

    tenant = turn = None
    settings: Mapping[str, str] = MappingProxyType({})
