"""Settings of the chat over documents."""

from typing import ClassVar

from pydantic import Field

from my_agent.settings import EnvironmentSettings


class ChatSettings(EnvironmentSettings):
    """Settings of search, rewriting and documents; each field is an environment variable."""

    PREFIX: ClassVar[str] = "CHAT_"

    rewrite: bool = Field(
        default=True,
        description="Whether a model completes follow-up questions before the search; else a word "
        "list does",
    )
    rewrite_model: str | None = Field(
        default=None,
        description="Model that completes follow-up questions; none: `OPENAI_MODEL`",
    )
    rewrite_seconds: float = Field(
        default=8.0, gt=0, description="Seconds for the completion of a question, with all attempts"
    )
    answer_seconds: float = Field(
        default=300.0, gt=0, description="Seconds for an answer, until its last token"
    )
    question_max_length: int = Field(
        default=4000, gt=0, description="Maximum length of a question of `/api/ask`, in characters"
    )
    passages: int = Field(
        default=6,
        ge=1,
        le=50,
        description="Maximum number of passages that the model reads for an answer",
    )
    document_max_bytes: int = Field(
        default=20 * 2**20,
        gt=0,
        description="Maximum size of a document, in bytes; ingestion skips larger ones",
    )
    document_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Maximum time to read one document, in seconds; its process is then killed",
    )
    document_memory_bytes: int = Field(
        default=2**30,
        ge=2**28,
        description="Maximum memory of the process that reads a document, in bytes; only on Linux",
    )
    tenant_documents: int = Field(
        default=5_000, ge=0, description="Maximum number of documents that a tenant may upload"
    )
    vector_cache_bytes: int = Field(
        default=256 * 2**20,
        ge=0,
        description="Memory for the bits of passages (56 bytes each), in bytes; vectors of a tenant "
        "whose bits do not fit are read from the database for each question",
    )
