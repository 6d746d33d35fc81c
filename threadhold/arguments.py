"""Arguments: check what a host passes to `LangGraphPlatform`, so that an error names the argument."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from threadhold.config_file import ConfigError, kind_of

_TEXTS = (
    "redis_url",
    "redis_prefix",
    "public_url",
    "metrics_permission",
    "metrics_token",
    "audit_permission",
)
_LISTS = ("old_aes_keys", "webhook_secrets", "audit_key", "thread_tables")
_WHOLE = {"n_jobs": 0, "max_body_bytes": 1, "max_json_nodes": 1, "max_json_depth": 1}
_SECONDS = ("grace_seconds", "body_timeout_seconds")


def check(given: Mapping[str, Any]) -> None:
    """Check the types of the arguments of a platform.

    Args:
        given: The arguments by name. None stands for a default where there is one.

    Raises:
        ConfigError: an argument has a wrong type, or is a negative number.
    """
    if not isinstance(given["database_url"], str):
        raise _wrong(given, "database_url", "a URL such as 'sqlite:///data/app.db'")
    for name in _TEXTS:
        if not isinstance(given[name], str | None):
            raise _wrong(given, name, "a string")
    for name in _LISTS:
        if not isinstance(given[name], Iterable) or isinstance(given[name], str | bytes):
            raise _wrong(given, name, "a list")
    for name, least in _WHOLE.items():
        value = given[name]
        if name == "n_jobs" and value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise _wrong(given, name, f"a whole number from {least}")
    for name in _SECONDS:
        if not _is_number(given[name]) or given[name] < 0:
            raise _wrong(given, name, "a number of seconds from 0")
    days = given["audit_retention_days"]
    if days is not None and not (_is_number(days) and days >= 1):
        raise _wrong(given, "audit_retention_days", "a number of at least 1")
    # `"false"`, a text, would otherwise open the metrics.
    if not isinstance(given["public_metrics"], bool):
        raise _wrong(given, "public_metrics", "True or False")
    if not isinstance(given["env"], Mapping | None):
        raise _wrong(given, "env", "a mapping of variables")
    if given["authenticate"] is not None and not _takes_request(given["authenticate"]):
        raise ConfigError("authenticate: must be a function that takes a request")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _takes_request(found: Any) -> bool:
    if not callable(found):
        return False
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        return False
    except ValueError:
        # A function of C has no signature.
        return True
    return True


def _wrong(given: Mapping[str, Any], name: str, wanted: str) -> ConfigError:
    value = given[name]
    # A number is no secret.
    shown = repr(value) if _is_number(value) else kind_of(value)
    return ConfigError(f"{name}: must be {wanted}, not {shown}")
