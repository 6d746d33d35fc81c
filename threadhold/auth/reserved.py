"""Reserved keys: refuse metadata and config in which a client sets keys that only the server writes."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from langgraph.config import get_config
from langgraph_sdk import Auth

from threadhold.auth.keys import AUTH_USER, TENANT_ID, USER_ID

_IDENTITY = {USER_ID: "identity", TENANT_ID: "tenant_id", "langgraph_auth_user_id": "identity"}


def refuse_metadata(metadata: Any, keys: tuple[str, ...], place: str = "metadata") -> None:
    """Refuse metadata that hold a reserved key.

    A graph that calls its own server passes on the metadata of its run. Reserved keys with the
    values of that run are removed from `metadata` instead.

    Args:
        metadata: The metadata of the request.
        keys: The reserved keys.
        place: The location of the metadata in the request, for the error message.

    Raises:
        Auth.exceptions.HTTPException: (422) a reserved key is set. The detail names the key.
    """
    reserved = [key for key in keys if isinstance(metadata, Mapping) and key in metadata]
    run_metadata = _run_metadata() if reserved else {}
    for key in reserved:
        passed_on = key in run_metadata and run_metadata[key] == metadata[key]
        if not passed_on or not isinstance(metadata, MutableMapping):
            raise _refusal(f"{place}.{key}")
        del metadata[key]


def _run_metadata() -> Mapping[str, Any]:
    """Return the metadata of the run whose graph makes this request inside this process.

    The request of a client belongs to no run, so the result is empty.
    """
    try:
        return get_config().get("metadata") or {}
    except RuntimeError:
        return {}


def refuse_config(config: Any, user: Any, keys: tuple[str, ...]) -> None:
    """Refuse a run's config that holds a reserved key or names a user other than the caller.

    Args:
        config: The config of the request.
        user: The caller.
        keys: The reserved keys of `config.metadata`.

    Raises:
        Auth.exceptions.HTTPException: (422) a reserved key is set. The detail names the key.
    """
    if isinstance(config, Mapping):
        refuse_metadata(config.get("metadata"), keys, "config.metadata")
        refuse_names(config.get("configurable"), user, "config.configurable")


def refuse_names(values: Any, user: Any, place: str) -> None:
    """Refuse values that name a user other than the caller.

    A graph that calls its own server passes on the values of its run. They name the caller and
    are accepted.

    Args:
        values: The `configurable` or `context` of the request.
        user: The caller.
        place: The location of the values in the request, for the error message.

    Raises:
        Auth.exceptions.HTTPException: (422) a value names another user. The detail names its key.
    """
    if not isinstance(values, Mapping):
        return
    for key, name in _IDENTITY.items():
        if key in values and values[key] != user[name]:
            raise _refusal(f"{place}.{key}")
    claimed = values.get(AUTH_USER)
    if claimed is not None and not _is_same_user(claimed, user):
        raise _refusal(f"{place}.{AUTH_USER}")
    permissions = values.get("langgraph_auth_permissions")
    if permissions is not None and permissions != user["permissions"]:
        raise _refusal(f"{place}.langgraph_auth_permissions")


def _is_same_user(claimed: Any, user: Any) -> bool:
    try:
        return all(claimed[name] == user[name] for name in ("identity", "tenant_id", "roles"))
    except (KeyError, TypeError, AttributeError):
        return False


def _refusal(key: str) -> Exception:
    return Auth.exceptions.HTTPException(
        status_code=422,
        detail=f"`{key}` is reserved: the server sets it from the token. Remove it",
    )
