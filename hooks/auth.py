"""Auth: who asks, and what of everything there is belongs to them.

`langgraph.json` names it: `"auth": {"path": "hooks.auth:auth"}`. What a user
creates is stamped with tenant and user; every filter asks for that stamp, so
what has none is nobody's. A resource or action without a handler is refused.
"""

from collections.abc import Mapping
from typing import Any

from langgraph_sdk import Auth

from contexts.keys import ASSISTANT_KEYS
from hooks.identity import TENANT_ADMIN, authenticator
from hooks.reserved import refuse_config, refuse_metadata, refuse_names

Context = Auth.types.AuthContext
Filter = dict[str, Any]
Value = Any  # a dict; the SDK has a type for each action, and handlers are shared

auth = Auth()

# At start-up, so that a server that could let nobody in, or everybody, does not start.
_authenticator = authenticator()


@auth.authenticate
async def authenticate(scope: dict[str, Any]) -> Auth.types.MinimalUserDict:
    """The user whose bearer token came with the request.

    Raises:
        NotAuthenticated: (401) there is no valid one.
    """
    found: Any = dict(await _authenticator.identify(scope))
    return found  # type: ignore[no-any-return]


@auth.on
async def deny(ctx: Context, value: Value) -> None:
    """Whatever has no handler below."""
    raise Auth.exceptions.HTTPException(
        status_code=403, detail=f"{ctx.resource}.{ctx.action} is not allowed"
    )


# --- threads, and the runs in them; crons -----------------------------------


@auth.on(resources=["threads", "crons"], actions=["read", "delete", "search"])
async def own(ctx: Context, value: Value) -> Filter:
    """The user's own; all of the tenant's for its administrators."""
    return _own(ctx)


@auth.on(resources="threads", actions="create")
async def create_thread(ctx: Context, value: Value) -> Filter:
    """A new thread is its creator's."""
    refuse_metadata(value.get("metadata"))
    _stamp(ctx, value)
    return _own(ctx)


@auth.on(resources="threads", actions="update")
async def update_thread(ctx: Context, value: Value) -> Filter:
    """A thread keeps its owner."""
    # A cancellation's `metadata` are its own arguments and are written nowhere.
    if "action" not in value:
        refuse_metadata(value.get("metadata"))
    return _own(ctx)


@auth.on(resources="threads", actions="create_run")
async def create_run(ctx: Context, value: Value) -> Filter:
    """A run, and the thread that is created for it, are its creator's."""
    user, kwargs = _user(ctx), value.get("kwargs") or {}
    refuse_metadata(_of_client(ctx, value))
    refuse_config(kwargs.get("config"), user)
    refuse_names(kwargs.get("context"), user, "context")
    _stamp(ctx, value)
    return _own(ctx)


@auth.on(resources="crons", actions="create")
async def create_cron(ctx: Context, value: Value) -> Filter:
    """A cron is its creator's, and its runs act as its creator."""
    _check_cron(ctx, value)
    _stamp(ctx, value)
    return _own(ctx)


@auth.on(resources="crons", actions="update")
async def update_cron(ctx: Context, value: Value) -> Filter:
    """A cron keeps its owner."""
    _check_cron(ctx, value)
    return _own(ctx)


def _check_cron(ctx: Context, value: Value) -> None:
    user, payload = _user(ctx), value.get("payload") or {}
    refuse_metadata(value.get("metadata"))
    refuse_metadata(payload.get("metadata"), "payload.metadata")
    refuse_config(payload.get("config"), user)
    refuse_names(payload.get("context"), user, "context")


# --- assistants -------------------------------------------------------------


@auth.on(resources="assistants", actions=["read", "search"])
async def read_assistants(ctx: Context, value: Value) -> Filter:
    """The tenant's, and those that the system made from the graphs."""
    return {"$or": [{"tenant_id": _user(ctx)["tenant_id"]}, {"created_by": "system"}]}


@auth.on(resources="assistants", actions="create")
async def create_assistant(ctx: Context, value: Value) -> Filter:
    """A new assistant is its creator's, and for the tenant to use."""
    _check_assistant(ctx, value)
    _stamp(ctx, value)
    return _own(ctx)


@auth.on(resources="assistants", actions=["update", "delete"])
async def change_assistant(ctx: Context, value: Value) -> Filter:
    """Its creator, or an administrator, may; the system's are nobody's to change."""
    _check_assistant(ctx, value)
    return _own(ctx)


def _check_assistant(ctx: Context, value: Value) -> None:
    user = _user(ctx)
    refuse_metadata(value.get("metadata"), keys=ASSISTANT_KEYS)
    refuse_config(value.get("config"), user, keys=ASSISTANT_KEYS)
    refuse_names(value.get("context"), user, "context")


# --- the store --------------------------------------------------------------


@auth.on(resources="store", actions=["put", "get", "search", "delete", "list_namespaces"])
async def own_namespace(ctx: Context, value: Value) -> None:
    """Every namespace lies under the tenant's and the user's own.

    One that is written out in full, as answers show it, is taken as it is;
    administrators may write out any of their tenant.
    """
    user = _user(ctx)
    root = tuple(user["store_namespace"])
    allowed = root[:1] if TENANT_ADMIN in user["roles"] else root
    asked = tuple(value.get("namespace") or ())
    value["namespace"] = asked if asked[: len(allowed)] == allowed else (*root, *asked)


# --- shared -----------------------------------------------------------------


def _user(ctx: Context) -> Any:
    """The user, whom `authenticate` has made, or a run or cron has kept.

    Raises:
        Auth.exceptions.HTTPException: (403) it is of no tenant.
    """
    if not {"tenant_id", "roles", "store_namespace"} <= set(ctx.user):
        raise Auth.exceptions.HTTPException(status_code=403, detail="You belong to no tenant")
    return ctx.user


def _own(ctx: Context) -> Filter:
    user = _user(ctx)
    tenant = {"tenant_id": user["tenant_id"]}
    return tenant if TENANT_ADMIN in user["roles"] else {**tenant, "user_id": user["identity"]}


def _of_client(ctx: Context, value: Value) -> Any:
    """What of a new run's metadata a client has written: a cron's run has the cron's stamp."""
    metadata, config = value.get("metadata"), (value.get("kwargs") or {}).get("config") or {}
    if not isinstance(metadata, Mapping) or "cron_id" not in (config.get("configurable") or {}):
        return metadata
    stamp = _whose(ctx)
    return {key: each for key, each in metadata.items() if stamp.get(key) != each}


def _stamp(ctx: Context, value: Value) -> None:
    """Write whose it is into the metadata that will be stored."""
    if value.get("metadata") is None:
        value["metadata"] = {}
    # In place: some runtimes store the very object that they have shown.
    value["metadata"].update(_whose(ctx))


def _whose(ctx: Context) -> dict[str, str]:
    user = _user(ctx)
    return {"tenant_id": user["tenant_id"], "user_id": user["identity"]}
