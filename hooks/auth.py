"""Authentication and authorization: identify the user of a request, and restrict access to owners.

`langgraph.json` selects this module with `"auth": {"path": "hooks.auth:auth"}`. Each new resource
stores its tenant and user in its metadata. Every filter compares them, so a resource without an
owner is visible to no user. A resource or action without a handler is refused.
"""

from collections.abc import Mapping
from typing import Any

from langgraph_sdk import Auth

from hooks.identity import TENANT_ADMIN, authenticator, targets
from hooks.reserved import refuse_config, refuse_metadata, refuse_names
from my_agent.keys import ASSISTANT_KEYS, CRON_KEYS, TOKEN_ID
from threadhold import sessions

Context = Auth.types.AuthContext
Filter = dict[str, Any]
# A dict. The SDK has one type for each action, but a handler here serves several actions.
Value = Any

auth = Auth()

# Created at import: without a usable key, the server must refuse to start.
_authenticator = authenticator()


@auth.authenticate
async def authenticate(scope: dict[str, Any]) -> Auth.types.MinimalUserDict:
    """Return the user of the request's bearer token.

    Args:
        scope: The ASGI scope of the request.

    Raises:
        NotAuthenticated: (401) the request has no valid token.
    """
    user: Any = dict(await _authenticator.identify(scope))
    return user  # type: ignore[no-any-return]


@auth.on
async def deny(ctx: Context, value: Value) -> None:
    """Refuse each resource and action that has no handler below.

    Raises:
        Auth.exceptions.HTTPException: (403) always.
    """
    raise Auth.exceptions.HTTPException(
        status_code=403, detail=f"{ctx.resource}.{ctx.action} is not allowed on this server"
    )


# --- threads, and the runs in them; crons -----------------------------------


@auth.on(resources=["threads", "crons"], actions=["read", "delete", "search"])
async def filter_owned(ctx: Context, value: Value) -> Filter:
    """Restrict access to the user's own threads and crons, for administrators to the tenant's."""
    return _owner_filter(ctx)


@auth.on(resources="threads", actions="create")
async def create_thread(ctx: Context, value: Value) -> Filter:
    """Store the creator as the owner of a new thread."""
    refuse_metadata(value.get("metadata"))
    _write_owner(ctx, value)
    return _owner_filter(ctx)


@auth.on(resources="threads", actions="update")
async def update_thread(ctx: Context, value: Value) -> Filter:
    """Refuse to change the owner of a thread."""
    # The `metadata` of a cancellation are its own arguments and are not stored.
    if "action" not in value:
        refuse_metadata(value.get("metadata"))
    return _owner_filter(ctx)


@auth.on(resources="threads", actions="create_run")
async def create_run(ctx: Context, value: Value) -> Filter:
    """Store the creator as the owner of a new run, and of the thread that is created for the run.

    Raises:
        Auth.exceptions.HTTPException: (403) the user or its token is revoked. The run of a cron
            has no token that would have been refused.
    """
    user, kwargs = _user(ctx), value.get("kwargs") or {}
    if await sessions.is_revoked(targets(user)):
        raise Auth.exceptions.HTTPException(status_code=403, detail="This user is revoked")
    refuse_metadata(_client_metadata(ctx, value))
    refuse_config(kwargs.get("config"), user)
    refuse_names(kwargs.get("context"), user, "context")
    _write_owner(ctx, value)
    return _owner_filter(ctx)


@auth.on(resources="crons", actions="create")
async def create_cron(ctx: Context, value: Value) -> Filter:
    """Store the creator as the owner of a new cron. The cron's runs act as that user.

    The token is stored too, so that its revocation disables the cron.
    """
    _check_cron(ctx, value)
    _write_owner(ctx, value)
    user = _user(ctx)
    if "token_id" in user:
        value["metadata"][TOKEN_ID] = user["token_id"]
    return _owner_filter(ctx)


@auth.on(resources="crons", actions="update")
async def update_cron(ctx: Context, value: Value) -> Filter:
    """Refuse to change the owner of a cron."""
    _check_cron(ctx, value)
    return _owner_filter(ctx)


def _check_cron(ctx: Context, value: Value) -> None:
    user, payload = _user(ctx), value.get("payload") or {}
    refuse_metadata(value.get("metadata"), keys=CRON_KEYS)
    refuse_metadata(payload.get("metadata"), "payload.metadata", CRON_KEYS)
    refuse_config(payload.get("config"), user)
    refuse_names(payload.get("context"), user, "context")


# --- assistants -------------------------------------------------------------


@auth.on(resources="assistants", actions=["read", "search"])
async def read_assistants(ctx: Context, value: Value) -> Filter:
    """Restrict access to the tenant's assistants and those that the system created for the graphs."""
    return {"$or": [{"tenant_id": _user(ctx)["tenant_id"]}, {"created_by": "system"}]}


@auth.on(resources="assistants", actions="create")
async def create_assistant(ctx: Context, value: Value) -> Filter:
    """Store the creator as the owner of a new assistant. The whole tenant may use the assistant."""
    _check_assistant(ctx, value)
    _write_owner(ctx, value)
    return _owner_filter(ctx)


@auth.on(resources="assistants", actions=["update", "delete"])
async def change_assistant(ctx: Context, value: Value) -> Filter:
    """Restrict changes to the creator and the tenant's administrators.

    No user may change the assistants of the system.
    """
    _check_assistant(ctx, value)
    return _owner_filter(ctx)


def _check_assistant(ctx: Context, value: Value) -> None:
    user = _user(ctx)
    refuse_metadata(value.get("metadata"), keys=ASSISTANT_KEYS)
    refuse_config(value.get("config"), user, keys=ASSISTANT_KEYS)
    refuse_names(value.get("context"), user, "context")


# --- the store --------------------------------------------------------------


@auth.on(resources="store", actions=["put", "get", "search", "delete", "list_namespaces"])
async def scope_namespace(ctx: Context, value: Value) -> None:
    """Place the namespace of a request under the root `(tenant, user)` of its user.

    A namespace that already begins with that root, as answers show it, stays as it is.
    Administrators may name any namespace that begins with their tenant.
    """
    user = _user(ctx)
    root = tuple(user["store_namespace"])
    allowed = root[:1] if TENANT_ADMIN in user["roles"] else root
    requested = tuple(value.get("namespace") or ())
    value["namespace"] = requested if requested[: len(allowed)] == allowed else (*root, *requested)


# --- shared -----------------------------------------------------------------


def _user(ctx: Context) -> Any:
    """Return the user that `authenticate` returned, or that a run or cron stores.

    Raises:
        Auth.exceptions.HTTPException: (403) the user has no tenant.
    """
    if not {"tenant_id", "roles", "store_namespace"} <= set(ctx.user):
        raise Auth.exceptions.HTTPException(status_code=403, detail="This user has no tenant")
    return ctx.user


def _owner_filter(ctx: Context) -> Filter:
    user = _user(ctx)
    tenant = {"tenant_id": user["tenant_id"]}
    return tenant if TENANT_ADMIN in user["roles"] else {**tenant, "user_id": user["identity"]}


def _client_metadata(ctx: Context, value: Value) -> Any:
    """Return the part of a new run's metadata that comes from the client.

    A run of a cron also has the owner of the cron in its metadata. That part is left out.
    """
    metadata, config = value.get("metadata"), (value.get("kwargs") or {}).get("config") or {}
    if not isinstance(metadata, Mapping) or "cron_id" not in (config.get("configurable") or {}):
        return metadata
    owner = _owner(ctx)
    return {key: each for key, each in metadata.items() if owner.get(key) != each}


def _write_owner(ctx: Context, value: Value) -> None:
    """Write the owner into the metadata that will be stored."""
    if value.get("metadata") is None:
        value["metadata"] = {}
    # Change the object in place: some runtimes store the object that they passed to the handler.
    value["metadata"].update(_owner(ctx))


def _owner(ctx: Context) -> dict[str, str]:
    user = _user(ctx)
    return {"tenant_id": user["tenant_id"], "user_id": user["identity"]}
