"""What a host decides about the runtime beyond what `langgraph_api` configures."""

from dataclasses import dataclass

# In place of a URL, which langgraph_api requires and never reads.
NO_REDIS = "none"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Set by the platform before the runtime starts.

    Attributes:
        power_loss: fsync each commit, so that an acknowledged write survives the
            machine and not only the process.
        grace_seconds: How long runs in flight may go on at shutdown before they
            are handed back to continue after the next start.
        tenant_key: The key of metadata, and of an authenticated user, that names the
            tenant. Without it there are no tenants.
        redis_prefix: What all keys and channels in Redis begin with; None for one that is
            the database's own.
    """

    power_loss: bool = False
    grace_seconds: float = 10.0
    tenant_key: str | None = None
    redis_prefix: str | None = None


def redis_url() -> str | None:
    """The Redis through which several processes share the database; None with one process."""
    from langgraph_api import config

    url = str(config.REDIS_URI)
    return None if url == NO_REDIS else url
