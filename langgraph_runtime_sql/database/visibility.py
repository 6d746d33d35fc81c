"""Visibility: which rows a transaction sees, as the database is told of it."""

from collections.abc import Mapping
from typing import Protocol


class Visibility(Protocol):
    """What `tenancy.scope` decides for a caller. Only Postgres enforces it."""

    @property
    def tenant(self) -> str | None:
        """The one tenant whose rows are asked for; None where it is not one tenant's."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that the policies of the database compare with, by name."""
