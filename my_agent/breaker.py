"""A breaker for each tenant and model: after several failures in a row, the model is left alone."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from my_agent.user import NoTenantError, caller

logger = logging.getLogger(__name__)

Key = tuple[str, str, str]
"""Tenant, address of the endpoint, and name of the model."""

FAILURES = 3
"""Failures in a row that open a breaker."""
PAUSE = 60.0
"""Seconds for which an open breaker lets nothing through. Then one call tries again."""
# Tenants and models whose failures are remembered.
MOST = 1000


def tenant_of(config: RunnableConfig) -> str:
    """Return the tenant of a run; an empty text for users without one."""
    try:
        return caller(config).tenant_id
    except NoTenantError:
        return ""


def key_of(model: BaseChatModel, config: RunnableConfig) -> Key:
    """Return whose calls of which model count together."""
    address = getattr(model, "openai_api_base", None) or ""
    return tenant_of(config), str(address), str(getattr(model, "model_name", ""))


@dataclass(frozen=True)
class Pause:
    """A call that is not let through.

    Attributes:
        first: whether it is the first one since the breaker has opened.
    """

    first: bool


@dataclass
class _Line:
    failures: int = 0
    opened_at: float | None = None
    trying: bool = False
    told: bool = False


class Breaker:
    """Counts failures in a row, of all tenants apart: none can pause the model of another.

    A key without failures takes no memory.

    Args:
        clock: returns seconds, and never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: OrderedDict[Key, _Line] = OrderedDict()
        # Runs may have event loops, and threads, of their own.
        self._lock = threading.Lock()

    def enter(self, key: Key) -> Pause | None:
        """Return None if a call may be made. It must end in `succeeded`, `failed` or `left`."""
        with self._lock:
            line = self._lines.get(key)
            if line is None or line.opened_at is None:
                return None
            if not line.trying and self._clock() - line.opened_at >= PAUSE:
                line.trying = True
                return None
            first, line.told = not line.told, True
            return Pause(first)

    def succeeded(self, key: Key) -> None:
        """Close the breaker: the model answers, whatever it says."""
        with self._lock:
            line = self._lines.pop(key, None)
        if line is not None and line.opened_at is not None:
            logger.warning("The model %s answers again", key[2])

    def failed(self, key: Key) -> None:
        """Count a failure. The last one of `FAILURES` opens the breaker."""
        with self._lock:
            line = self._lines.setdefault(key, _Line())
            self._lines.move_to_end(key)
            if len(self._lines) > MOST:
                self._lines.popitem(last=False)
            line.failures += 1
            if line.trying:
                line.opened_at, line.trying = self._clock(), False
            opens = line.opened_at is None and line.failures >= FAILURES
            if opens:
                line.opened_at = self._clock()
        if opens:
            logger.warning(
                "The model %s has failed %s times in a row; it is not asked for structured answers "
                "of this tenant for %g seconds",
                key[2],
                FAILURES,
                PAUSE,
            )

    def left(self, key: Key) -> None:
        """End a call without a result, such as a cancelled one: another one may try."""
        with self._lock:
            if (line := self._lines.get(key)) is not None:
                line.trying = False


shared = Breaker()
"""The breaker of this process."""
