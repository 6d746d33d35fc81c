"""Limits: how much a tenant, a user, an assistant and a thread may use, as `sql.limits` configures them.

Everything is counted within a tenant. Two tenants that use the same assistant do not use up each
other's limit.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

RESERVED_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class Quota:
    """The limits of one member of a scope, as a tenant. None is no limit.

    Attributes:
        running_runs: Runs that execute at once, in all processes. Further runs wait.
        pending_runs: Runs that wait. Further ones are refused.
        starts_per_minute: Runs that are created in a minute. As many may come at once.
        requests_per_second: Requests, in each process. As many may come at once.
        open_streams: Streams, waiting requests and WebSockets that are open, in each process.
        threads: Stored threads.
        assistants: Stored assistants.
        versions: Stored versions of each assistant.
        version_bytes: Size of the stored versions of each assistant.
        page_bytes: Size of the values in a page of a thread's history.
        crons: Stored crons.
        stored_bytes: Size of the stored threads, runs, checkpoints, events and store items.
        weight: How many turns it has for each turn of a tenant with weight 1.
        priority: Higher ones start first. Tenants are compared first, then a tenant's runs.
        cron_priority: Added to the priority of a run that a cron starts.
    """

    running_runs: int | None = None
    pending_runs: int | None = None
    starts_per_minute: int | None = None
    requests_per_second: float | None = None
    open_streams: int | None = None
    threads: int | None = None
    assistants: int | None = None
    versions: int | None = None
    version_bytes: int | None = None
    page_bytes: int | None = None
    crons: int | None = None
    stored_bytes: int | None = None
    weight: float | None = None
    priority: int | None = None
    cron_priority: int | None = None


_OF_RUNS = ("running_runs", "pending_runs", "starts_per_minute")
_OF_REQUESTS = ("requests_per_second", "open_streams")
_OF_VERSIONS = ("versions", "version_bytes")
_NOT_OF_TENANTS = (*_OF_VERSIONS, "page_bytes")
KEYS: dict[str, tuple[str, ...]] = {
    "tenant": tuple(each.name for each in fields(Quota) if each.name not in _NOT_OF_TENANTS),
    "user": (*_OF_RUNS, *_OF_REQUESTS, "crons", "priority"),
    "assistant": (*_OF_RUNS, *_OF_VERSIONS, "priority"),
    "thread": ("open_streams", "page_bytes"),
    "process": ("open_streams",),
}
"""The scopes, and the limits that each may have."""
NAMED = ("tenant", "user", "assistant")
"""The scopes whose members may have limits of their own."""
DEFAULTS: Mapping[str, Quota] = {
    "tenant": Quota(open_streams=1_000, pending_runs=10_000),
    "assistant": Quota(versions=1_000, version_bytes=32 * 2**20),
    "thread": Quota(open_streams=100, page_bytes=64 * 2**20),
    "process": Quota(open_streams=5_000),
}
"""The limits without any configuration. They are far beyond what a person or a program needs."""
_FLOATS = ("requests_per_second", "weight")
_MAY_BE_NEGATIVE = ("priority", "cron_priority")
_MAY_BE_ZERO = ("pending_runs", "threads", "assistants", "crons", "stored_bytes")
_LARGEST_PRIORITY = 1000


@dataclass(frozen=True, kw_only=True)
class Limits:
    """All limits.

    Attributes:
        defaults: The quota of each scope.
        named: For each scope, the quotas of those that are named. They have the default's
            limits where they set none.
        reserved_share: The share of a process's slots that only tenants without running runs
            may take, from 0 to 1.
    """

    defaults: Mapping[str, Quota] = field(default_factory=lambda: DEFAULTS)
    named: Mapping[str, Mapping[str, Quota]] = field(default_factory=dict)
    reserved_share: float = RESERVED_SHARE

    def of(self, scope: str, *names: str | None) -> Quota:
        """Return the quota of a scope's member: of the first name that has its own."""
        named = self.named.get(scope, {})
        for name in names:
            if name is not None and name in named:
                return named[name]
        return self.defaults.get(scope, _NONE)

    def class_of(self, tenant: str | None) -> str:
        """Return the class of a tenant in metrics: `none`, `named` here, or `other`."""
        if tenant is None:
            return "none"
        return "named" if tenant in self.named.get("tenant", {}) else "other"

    def any_has(self, *limits: str, scopes: tuple[str, ...] = tuple(KEYS)) -> bool:
        """Return whether one of these limits is set anywhere in these scopes."""
        return any((scope, limit) in self._present for scope in scopes for limit in limits)

    def is_configured(self, limit: str) -> bool:
        """Return whether this limit has a value that is not built in."""
        return any(
            getattr(quota, limit) not in (None, getattr(DEFAULTS.get(scope, _NONE), limit))
            for scope, quota in self._quotas()
        )

    def reserved_slots(self, slots: int) -> int:
        """Return how many of a process's slots are reserved; never the only one."""
        return min(max(0, slots - 1), math.ceil(slots * self.reserved_share))

    @cached_property
    def order_claims(self) -> bool:
        """Whether a claim must look at limits, weights or the priorities of tenants."""
        return self.any_has("running_runs") or self.any_has(
            "weight", "priority", scopes=("tenant",)
        )

    @cached_property
    def _present(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (scope, each.name)
            for scope, quota in self._quotas()
            for each in fields(quota)
            if getattr(quota, each.name) is not None
        )

    def _quotas(self) -> Iterator[tuple[str, Quota]]:
        """Yield each quota with its scope."""
        yield from self.defaults.items()
        for scope, named in self.named.items():
            for quota in named.values():
                yield scope, quota


_NONE = Quota()


class BadLimit(ValueError):
    """A limit that cannot be used.

    Attributes:
        key: Its place below `sql.limits`, as `tenant.threads`.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key


def parse(section: Any, *, has_tenants: bool = True) -> Limits:
    """Read the section `sql.limits`.

    Args:
        section: The section, or None.
        has_tenants: Whether there are tenants. If not, all users are one tenant, which has no limit
            that is not configured.

    Raises:
        BadLimit: a key is unknown, or a value is not usable.
    """
    section = {} if section is None else _object("", section)
    plural = {f"{scope}s": scope for scope in NAMED}
    known = [*KEYS, *plural, "reserved_share"]
    _refuse_unknown("", section, known)
    built_in = dict(DEFAULTS) if has_tenants else {**DEFAULTS, "tenant": _NONE}
    defaults = {
        scope: _quota(scope, scope, section.get(scope, {}), built_in.get(scope, _NONE))
        for scope in KEYS
    }
    named = {
        scope: {
            name: _quota(f"{key}.{name}", scope, each, defaults[scope])
            for name, each in _object(key, section[key]).items()
        }
        for key, scope in plural.items()
        if key in section
    }
    share = section.get("reserved_share", RESERVED_SHARE)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise BadLimit("reserved_share", "must be a number from 0 to 1")
    return Limits(defaults=defaults, named=named, reserved_share=float(share))


def _quota(key: str, scope: str, section: Any, default: Quota) -> Quota:
    section = _object(key, section)
    _refuse_unknown(key, section, KEYS[scope])
    values = {name: getattr(default, name) for name in KEYS[scope]}
    for name, value in section.items():
        # null removes the default's limit.
        values[name] = None if value is None else _number(f"{key}.{name}", name, value)
    return Quota(**values)


def _number(key: str, name: str, value: Any) -> float | int:
    kinds = (int, float) if name in _FLOATS else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise BadLimit(key, f"must be a {'number' if name in _FLOATS else 'whole number'} or null")
    if name in _MAY_BE_NEGATIVE:
        if abs(value) > _LARGEST_PRIORITY:
            raise BadLimit(
                key, f"must be from {-_LARGEST_PRIORITY} to {_LARGEST_PRIORITY}, not {value}"
            )
    elif not math.isfinite(value) or value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
        raise BadLimit(key, f"must be greater than 0, not {value}")
    return value


def _object(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadLimit(key, "must be an object")
    return value


def _refuse_unknown(key: str, section: Mapping[str, Any], known: Any) -> None:
    if unknown := sorted(section.keys() - set(known)):
        name = f"{key}.{unknown[0]}".lstrip(".")
        raise BadLimit(name, f"unknown key; there are {', '.join(known)}")
