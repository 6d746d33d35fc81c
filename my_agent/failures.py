"""Failures of model calls, as an error and as a value. It imports no client."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "refused", "filtered", "late", "unreachable", "overloaded", "unusable", "paused", "cut"
]
"""What went wrong: the model refused to answer; a content filter stopped it; it did not answer in
time; its endpoint could not be reached, failed, or rejected the request; it is over its limits; its
answer does not have the form that was asked for; it was not asked, because it has failed several
times; or its answer ended at its maximum length."""

# Failures that may pass when the endpoint is left alone.
OUTAGES: frozenset[Kind] = frozenset({"late", "unreachable", "overloaded"})


@dataclass(frozen=True)
class Failed:
    """A structured call that brought no value.

    Attributes:
        kind: what went wrong.
        said: a sentence for the person who waits.
        first: whether a graph should say it. False for `paused`, if an earlier call has met the
            same pause.
        tokens: what the endpoint has reported for the answers that were not usable.
    """

    kind: Kind
    said: str
    first: bool = True
    tokens: int = 0


class ModelCallError(RuntimeError):
    """A call of the model failed. The cause is the client's own exception.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.

    Args:
        said: a sentence for the person who waits.
        kind: what went wrong.
        works: whether the endpoint works, and only this request failed.
        about_format: whether the endpoint rejected the form that was asked for.
        retry_after: seconds after which the same request may succeed; None: it will not.
    """

    def __init__(
        self,
        said: str | None = None,
        *,
        kind: Kind = "unreachable",
        works: bool = False,
        about_format: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(said)
        self.kind = kind
        self.works = works
        self.about_format = about_format
        self.retry_after = retry_after

    @property
    def is_outage(self) -> bool:
        """Whether the endpoint should be left alone if this happens again and again."""
        return self.kind in OUTAGES and not self.works
