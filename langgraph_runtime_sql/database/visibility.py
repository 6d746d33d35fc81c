"""Visibility: the rows that a transaction may see."""

from collections.abc import Mapping
from typing import Protocol


class Visibility(Protocol):
    """A caller's scope, as `tenancy.scope` decides it. Only Postgres enforces it."""

    @property
    def tenant(self) -> str | None:
        """The one tenant whose rows are visible; None if there is not exactly one."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that the database's policies compare with, by name."""
