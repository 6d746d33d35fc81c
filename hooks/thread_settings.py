"""Settings of the thread policy: which agents have it, and its limits."""

from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class ThreadSettings(BaseSettings):
    """What `hooks/threads.py` is told by the environment. Variables are the names in capitals."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True, env_ignore_empty=True)

    thread_policy_agents: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("icp_finder",),
        description="Agents (graph ids) that have the thread policy, separated by commas; "
        "`-` for none",
    )
    single_thread_per_context: bool = Field(
        default=True, description="A new thread locks the earlier open ones of its context"
    )
    max_open_threads_per_agent: int = Field(
        default=1, ge=1, description="Open threads that a user may have for one context of an agent"
    )
    thread_resume_window_days: float = Field(
        default=7.0, ge=0, description="An open thread is resumed if it was used in so many days"
    )
    thread_stale_days: float = Field(
        default=30.0, ge=0, description="A locked thread is stale after so many days without use"
    )
    auto_archive_stale_locked: bool = Field(
        default=True,
        description="Archive stale locked threads when a new one of their context is made",
    )
    return_user_strict: bool = Field(
        default=True,
        description="Let users choose where several threads could be resumed, or else take "
        "the last",
    )
    icp_rule_name: str = Field(
        default="Default ICP",
        min_length=1,
        description="Rule of a thread that names neither a website nor a rule",
    )

    def environment(self) -> dict[str, str]:
        """These settings as environment variables."""
        values = {name: getattr(self, name) for name in ThreadSettings.model_fields}
        return {name.upper(): _written(value) for name, value in values.items()}

    @field_validator("thread_policy_agents", mode="before")
    @classmethod
    def _split_agents(cls, value: object) -> object:
        if isinstance(value, str):
            names = (name.strip() for name in value.split(","))
            return tuple(name for name in names if name and name != "-")
        return value


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value) or "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
