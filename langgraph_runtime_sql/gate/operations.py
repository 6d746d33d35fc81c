"""Operations: what a client can ask for, and which of it writes.

Each names the event that the project's authorization handlers get, and the entry that the audit log
gets. A route that writes has an operation here.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """What a client asks for.

    Attributes:
        kind: The kind of the object, as in the audit log.
        action: What happens to it, as in the audit log.
        event: Resource and action of the handlers' event; None if the route itself checks a permission.
        writes: Whether it changes the object.
    """

    kind: str
    action: str
    event: tuple[str, str] | None
    writes: bool = True

    @property
    def name(self) -> str:
        """The name of the operation in errors."""
        return f"{self.kind}.{self.action}"


def _reads(resource: str, kind: str, action: str = "read") -> Operation:
    return Operation(kind, action, (resource, action), writes=False)


THREAD_READ = _reads("threads", "thread")
THREAD_SEARCH = _reads("threads", "thread", "search")
THREAD_CREATE = Operation("thread", "create", ("threads", "create"))
THREAD_UPDATE = Operation("thread", "update", ("threads", "update"))
THREAD_DELETE = Operation("thread", "delete", ("threads", "delete"))
THREAD_PRUNE = Operation("thread", "prune", ("threads", "delete"))
STATE_WRITE = Operation("thread", "write_state", ("threads", "update"))

RUN_CREATE = Operation("run", "create", ("threads", "create_run"))
RUN_CANCEL = Operation("run", "cancel", ("threads", "update"))
RUN_DELETE = Operation("run", "delete", ("threads", "delete"))

ASSISTANT_READ = _reads("assistants", "assistant")
ASSISTANT_SEARCH = _reads("assistants", "assistant", "search")
ASSISTANT_CREATE = Operation("assistant", "create", ("assistants", "create"))
ASSISTANT_UPDATE = Operation("assistant", "update", ("assistants", "update"))
ASSISTANT_DELETE = Operation("assistant", "delete", ("assistants", "delete"))

CRON_READ = _reads("crons", "cron")
CRON_SEARCH = _reads("crons", "cron", "search")
CRON_CREATE = Operation("cron", "create", ("crons", "create"))
CRON_UPDATE = Operation("cron", "update", ("crons", "update"))
CRON_DELETE = Operation("cron", "delete", ("crons", "delete"))

ITEM_GET = _reads("store", "item", "get")
ITEM_SEARCH = _reads("store", "item", "search")
ITEM_NAMESPACES = _reads("store", "item", "list_namespaces")
ITEM_PUT = Operation("item", "put", ("store", "put"))
ITEM_DELETE = Operation("item", "delete", ("store", "delete"))

TENANT_EXPORT = Operation("tenant", "export", None, writes=False)

REVOCATION_CREATE = Operation("revocation", "create", None)
REVOCATION_LIFT = Operation("revocation", "lift", None)

ALL = tuple(each for each in tuple(globals().values()) if isinstance(each, Operation))
"""Every operation of the platform. A host adds its own as it needs them."""
