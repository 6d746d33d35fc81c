"""Tenant queue: work that waits for a thread, with tenants in turn."""

from collections import Counter, OrderedDict, deque
from typing import Generic, TypeVar

from langgraph_runtime_sql.errors import TooManyWaiting

T = TypeVar("T")


class TenantQueue(Generic[T]):
    """Work of tenants, each in its order. The tenants take turns. Its owner locks it.

    Args:
        each: How much of one tenant's work may be in progress at once; None: no limit.
    """

    def __init__(self, each: int | None = None) -> None:
        self._each = each
        # Tenants in the order of their turns.
        self._waiting: OrderedDict[str | None, deque[T]] = OrderedDict()
        self._at_hand: Counter[str | None] = Counter()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def tenants(self) -> list[str | None]:
        """The tenants whose work waits."""
        return list(self._waiting)

    def add(self, tenant: str | None, work: T, most: int | None = None) -> None:
        """Queue work.

        Args:
            tenant: Whose turn it takes; None: the platform's.
            work: The work.
            most: How much of a tenant's work may wait; None: no limit.

        Raises:
            TooManyWaiting: so much of the tenant's work waits already.
        """
        queue = self._waiting.get(tenant)
        if most is not None and tenant is not None and queue is not None and len(queue) >= most:
            raise TooManyWaiting(f"{most} operations that wait")
        if queue is None:
            queue = self._waiting[tenant] = deque()
        queue.append(work)
        self._count += 1

    def take(self) -> tuple[str | None, T] | None:
        """Return the next work that may begin, with its tenant; None if there is none."""
        for tenant in self._waiting:
            if self._each is None or self._at_hand[tenant] < self._each:
                return tenant, self._take(tenant)
        return None

    def _take(self, tenant: str | None) -> T:
        queue = self._waiting[tenant]
        work = queue.popleft()
        self._count -= 1
        if queue:
            self._waiting.move_to_end(tenant)
        else:
            del self._waiting[tenant]
        if self._each is not None:
            self._at_hand[tenant] += 1
        return work

    def ended(self, tenant: str | None) -> None:
        """Note that a work of `tenant` is no longer in progress."""
        self._at_hand[tenant] -= 1
        if not self._at_hand[tenant]:
            del self._at_hand[tenant]
