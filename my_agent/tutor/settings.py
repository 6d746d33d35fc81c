"""Settings of the graph `tutor`."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from my_agent.settings import EnvironmentSettings


class TutorSettings(EnvironmentSettings):
    """Limits of a conversation; each field is an environment variable."""

    PREFIX: ClassVar = "TUTOR_"

    correction_model: str | None = Field(
        default=None, description="Model that writes the corrections; empty: the answering model"
    )
    max_message_length: int = Field(
        default=4000, gt=0, description="Maximum length of a message, in characters"
    )
    window_turns: int = Field(
        default=20,
        ge=0,
        description="Maximum number of earlier turns that the model reads with a message",
    )
    window_length: int = Field(
        default=24_000,
        gt=0,
        description="Maximum length of a conversation that the model reads, in characters",
    )

    check_seconds: float = Field(
        default=10.0,
        gt=0,
        description="Maximum time of a run's checks without the model, with their waits for other "
        "tenants, in seconds",
    )
    review_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Maximum time of the model's review of a message, in seconds",
    )
    reply_seconds: float = Field(
        default=120.0, gt=0, description="Maximum time of the model's answer, in seconds"
    )

    @model_validator(mode="after")
    def _check_window_length(self) -> Self:
        if self.window_length < self.max_message_length:
            raise ValueError("TUTOR_WINDOW_LENGTH must be at least TUTOR_MAX_MESSAGE_LENGTH")
        return self
