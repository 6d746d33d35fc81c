"""Reserved keys: what in metadata and config is ours to write, and never a client's."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from langgraph.config import get_config
from langgraph_sdk import Auth

from contexts.keys import AUTH_USER, POLICY_KEYS, TENANT_ID, USER_ID

_IDENTITY = {USER_ID: "identity", TENANT_ID: "tenant_id", "langgraph_auth_user_id": "identity"}


def refuse_metadata(
    metadata: Any, place: str = "metadata", keys: tuple[str, ...] = POLICY_KEYS
) -> None:
    """Refuse metadata of a client that hold a reserved key.

    What a graph hands on, as this server has told its run, is left out instead.

    Raises:
        Auth.exceptions.HTTPException: (422) it names the key.
    """
    held = [key for key in keys if isinstance(metadata, Mapping) and key in metadata]
    told = _told() if held else {}
    for key in held:
        handed_on = key in told and told[key] == metadata[key]
        if not handed_on or not isinstance(metadata, MutableMapping):
            raise _refusal(f"{place}.{key}")
        del metadata[key]


def _told() -> Mapping[str, Any]:
    """The metadata in the config of the run whose graph asks, from inside of this process.

    A client's request has none: it comes with the context of no run.
    """
    try:
        return get_config().get("metadata") or {}
    except RuntimeError:
        return {}


def refuse_config(
    config: Any, user: Any, place: str = "config", keys: tuple[str, ...] = POLICY_KEYS
) -> None:
    """Refuse a run's config that holds a reserved key, or names another user than the caller.

    Raises:
        Auth.exceptions.HTTPException: (422) it names the key.
    """
    if isinstance(config, Mapping):
        refuse_metadata(config.get("metadata"), f"{place}.metadata", keys)
        refuse_names(config.get("configurable"), user, f"{place}.configurable")


def refuse_names(values: Any, user: Any, place: str) -> None:
    """Refuse values that say that somebody else than the caller asks.

    A graph that calls its own server sends along what it was told, which is true.

    Raises:
        Auth.exceptions.HTTPException: (422) it names the key.
    """
    if not isinstance(values, Mapping):
        return
    for key, name in _IDENTITY.items():
        if key in values and values[key] != user[name]:
            raise _refusal(f"{place}.{key}")
    claimed = values.get(AUTH_USER)
    if claimed is not None and not _is(claimed, user):
        raise _refusal(f"{place}.{AUTH_USER}")
    permissions = values.get("langgraph_auth_permissions")
    if permissions is not None and permissions != user["permissions"]:
        raise _refusal(f"{place}.langgraph_auth_permissions")


def _is(claimed: Any, user: Any) -> bool:
    try:
        return all(claimed[name] == user[name] for name in ("identity", "tenant_id", "roles"))
    except (KeyError, TypeError, AttributeError):
        return False


def _refusal(key: str) -> Exception:
    return Auth.exceptions.HTTPException(
        status_code=422, detail=f"`{key}` is reserved: the server sets it, from your token"
    )
