"""Settings of the chat over documents."""

from typing import ClassVar

from pydantic import Field

from my_agent.settings import EnvironmentSettings


class ChatSettings(EnvironmentSettings):
    """Settings of search, rewriting and documents; each field is an environment variable."""

    PREFIX: ClassVar[str] = "CHAT_"

    rewrite_model: str = Field(
        default="gpt-4o-mini",
        description="Model that makes a follow-up question complete, before documents are searched",
    )
    question_max_length: int = Field(
        default=4000, gt=0, description="Longest question of `/api/ask`, in characters"
    )
    passages: int = Field(
        default=6, ge=1, le=50, description="Passages of documents that an answer is given"
    )
    document_max_bytes: int = Field(
        default=20 * 2**20, gt=0, description="Larger documents are skipped"
    )
    vector_cache_bytes: int = Field(
        default=256 * 2**20,
        ge=0,
        description="Memory for the passages' vectors; a tenant's that do not fit are read again",
    )
