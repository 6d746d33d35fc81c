"""Settings of the thread policy: the agents under the policy, and its limits."""

from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class ThreadSettings(BaseSettings):
    """Settings of `hooks/threads.py`. Each field is an environment variable, in capital letters."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True, env_ignore_empty=True)

    thread_policy_agents: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("icp_finder",),
        description="Agents (graph ids) under the thread policy, separated by commas; `-`: none",
    )
    single_thread_per_context: bool = Field(
        default=True, description="Lock the earlier open threads of a context for a new thread"
    )
    max_open_threads_per_agent: int = Field(
        default=1,
        ge=1,
        description="Maximum number of open threads for each user, agent and context",
    )
    thread_resume_window_days: float = Field(
        default=7.0,
        ge=0,
        description="Time after its last use in which an open thread can be resumed, in days",
    )
    thread_stale_days: float = Field(
        default=30.0,
        ge=0,
        description="Time after its last use until a locked thread is stale, in days",
    )
    auto_archive_stale_locked: bool = Field(
        default=True,
        description="Archive stale locked threads, regularly and when their context gets a new "
        "thread",
    )
    return_user_strict: bool = Field(
        default=True,
        description="If several threads can be resumed, let the user choose; `false`: resume "
        "the last used one",
    )
    icp_rule_name: str = Field(
        default="Default ICP",
        min_length=1,
        description="Name of the rule for a thread that names neither a website nor a rule",
    )

    def environment(self) -> dict[str, str]:
        """Return these settings as environment variables."""
        values = {name: getattr(self, name) for name in ThreadSettings.model_fields}
        return {name.upper(): _as_text(value) for name, value in values.items()}

    @field_validator("thread_policy_agents", mode="before")
    @classmethod
    def _split_agents(cls, value: object) -> object:
        if isinstance(value, str):
            names = (name.strip() for name in value.split(","))
            return tuple(name for name in names if name and name != "-")
        return value


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value) or "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
