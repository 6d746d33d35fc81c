"""Tenants: authenticate each request, and restrict everybody to the own tenant's and own resources.

Each new resource stores its tenant and user in its metadata. Every filter compares them, so a
resource without an owner is visible to no user. A resource or action without a handler is refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_sdk import Auth

from threadhold import sessions
from threadhold.auth.identity import TENANT_ADMIN, authenticator, targets
from threadhold.auth.keys import CREATED_BY, OWNER, TENANT_ID, TOKEN_ID, USER_ID
from threadhold.auth.reserved import refuse_config, refuse_metadata, refuse_names

Context = Auth.types.AuthContext
Filter = dict[str, Any]
# A dict. The SDK has one type for each action, but a handler here serves several actions.
Value = Any


def tenant_auth(reserved: Sequence[str] = ()) -> Auth:
    """Make an `Auth` that separates tenants and users.

    Args:
        reserved: Further metadata keys that clients must not write, such as those that a policy of
            the project writes.

    Raises:
        ValueError: outside `local_dev`, there is no key, audience or issuer; or the key cannot be
            read.
    """
    auth, handlers = Auth(), _Handlers((*OWNER, *reserved))
    # Now and not at the first request: without a usable key, the server must refuse to start.
    identify = authenticator().identify

    @auth.authenticate
    async def authenticate(scope: dict[str, Any]) -> Auth.types.MinimalUserDict:
        """Return the user of the request's bearer token."""
        user: Any = dict(await identify(scope))
        return user  # type: ignore[no-any-return]

    auth.on(handlers.deny)
    owned: Any = auth.on(resources=["threads", "crons"], actions=["read", "delete", "search"])
    owned(handlers.filter_owned)
    for resource, action, handler in (
        ("threads", "create", handlers.create_thread),
        ("threads", "update", handlers.update_thread),
        ("threads", "create_run", handlers.create_run),
        ("crons", "create", handlers.create_cron),
        ("crons", "update", handlers.update_cron),
        ("assistants", ["read", "search"], handlers.read_assistants),
        ("assistants", "create", handlers.create_assistant),
        ("assistants", ["update", "delete"], handlers.change_assistant),
        (
            "store",
            ["put", "get", "search", "delete", "list_namespaces"],
            handlers.scope_namespace,
        ),
    ):
        on: Any = auth.on(resources=resource, actions=action)
        on(handler)
    return auth


class _Handlers:
    """The authorization handlers.

    Args:
        reserved: Metadata keys that clients must not write.
    """

    def __init__(self, reserved: tuple[str, ...]) -> None:
        self._reserved = reserved
        self._of_crons = (*reserved, TOKEN_ID)
        self._of_assistants = (*reserved, CREATED_BY)

    async def deny(self, ctx: Context, value: Value) -> None:
        """Refuse each resource and action that has no handler below.

        Raises:
            Auth.exceptions.HTTPException: (403) always.
        """
        raise Auth.exceptions.HTTPException(
            status_code=403, detail=f"{ctx.resource}.{ctx.action} is not allowed on this server"
        )

    # --- threads, and the runs in them; crons ---

    async def filter_owned(self, ctx: Context, value: Value) -> Filter:
        """Restrict access to the user's own threads and crons, for administrators to the tenant's."""
        return _owner_filter(ctx)

    async def create_thread(self, ctx: Context, value: Value) -> Filter:
        """Store the creator as the owner of a new thread."""
        refuse_metadata(value.get("metadata"), self._reserved)
        _write_owner(ctx, value)
        return _owner_filter(ctx)

    async def update_thread(self, ctx: Context, value: Value) -> Filter:
        """Refuse to change the owner of a thread."""
        # The `metadata` of a cancellation are its own arguments and are not stored.
        if "action" not in value:
            refuse_metadata(value.get("metadata"), self._reserved)
        return _owner_filter(ctx)

    async def create_run(self, ctx: Context, value: Value) -> Filter:
        """Store the creator as the owner of a new run, and of the thread that is created for the run.

        Raises:
            Auth.exceptions.HTTPException: (403) the user or its token is revoked. The run of a cron
                has no token that would have been refused.
        """
        user, kwargs = _user(ctx), value.get("kwargs") or {}
        if await sessions.is_revoked(targets(user)):
            raise Auth.exceptions.HTTPException(status_code=403, detail="This user is revoked")
        refuse_metadata(_client_metadata(ctx, value), self._reserved)
        refuse_config(kwargs.get("config"), user, self._reserved)
        refuse_names(kwargs.get("context"), user, "context")
        _write_owner(ctx, value)
        return _owner_filter(ctx)

    async def create_cron(self, ctx: Context, value: Value) -> Filter:
        """Store the creator as the owner of a new cron. The cron's runs act as that user.

        The token is stored too, so that its revocation disables the cron.
        """
        self._check_cron(ctx, value)
        _write_owner(ctx, value)
        user = _user(ctx)
        if "token_id" in user:
            value["metadata"][TOKEN_ID] = user["token_id"]
        return _owner_filter(ctx)

    async def update_cron(self, ctx: Context, value: Value) -> Filter:
        """Refuse to change the owner of a cron."""
        self._check_cron(ctx, value)
        return _owner_filter(ctx)

    def _check_cron(self, ctx: Context, value: Value) -> None:
        user, payload = _user(ctx), value.get("payload") or {}
        refuse_metadata(value.get("metadata"), self._of_crons)
        refuse_metadata(payload.get("metadata"), self._of_crons, "payload.metadata")
        refuse_config(payload.get("config"), user, self._reserved)
        refuse_names(payload.get("context"), user, "context")

    # --- assistants ---

    async def read_assistants(self, ctx: Context, value: Value) -> Filter:
        """Restrict access to the tenant's assistants and those that the system made for the graphs."""
        return {"$or": [{TENANT_ID: _user(ctx)["tenant_id"]}, {CREATED_BY: "system"}]}

    async def create_assistant(self, ctx: Context, value: Value) -> Filter:
        """Store the creator as the owner of a new assistant. The whole tenant may use the assistant."""
        self._check_assistant(ctx, value)
        _write_owner(ctx, value)
        return _owner_filter(ctx)

    async def change_assistant(self, ctx: Context, value: Value) -> Filter:
        """Restrict changes to the creator and the tenant's administrators.

        No user may change the assistants of the system.
        """
        self._check_assistant(ctx, value)
        return _owner_filter(ctx)

    def _check_assistant(self, ctx: Context, value: Value) -> None:
        user = _user(ctx)
        refuse_metadata(value.get("metadata"), self._of_assistants)
        refuse_config(value.get("config"), user, self._of_assistants)
        refuse_names(value.get("context"), user, "context")

    # --- the store ---

    async def scope_namespace(self, ctx: Context, value: Value) -> None:
        """Place the namespace of a request under the root `(tenant, user)` of its user.

        A namespace that already begins with that root, as answers show it, stays as it is.
        Administrators may name any namespace that begins with their tenant.
        """
        user = _user(ctx)
        root = tuple(user["store_namespace"])
        allowed = root[:1] if TENANT_ADMIN in user["roles"] else root
        requested = tuple(value.get("namespace") or ())
        value["namespace"] = (
            requested if requested[: len(allowed)] == allowed else (*root, *requested)
        )


# --- shared ---


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
    tenant = {TENANT_ID: user["tenant_id"]}
    return tenant if TENANT_ADMIN in user["roles"] else {**tenant, USER_ID: user["identity"]}


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
    return {TENANT_ID: user["tenant_id"], USER_ID: user["identity"]}


def __getattr__(name: str) -> Any:
    """Make `auth` at its first use, because a project with reserved keys makes its own."""
    if name != "auth":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["auth"] = made = tenant_auth()
    return made
