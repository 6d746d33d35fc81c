"""Choose the language model: an OpenAI-compatible endpoint, or the offline model."""

from functools import lru_cache
from typing import ClassVar

from langchain_core.language_models import BaseChatModel
from pydantic import AnyHttpUrl, Field, SecretStr, field_validator

from my_agent.offline import OfflineChatModel
from my_agent.settings import EnvironmentSettings


class ModelSettings(EnvironmentSettings):
    """Settings of the endpoint; each field is an environment variable."""

    PREFIX: ClassVar = "OPENAI_"

    api_key: SecretStr | None = Field(default=None, description="Key of the endpoint")
    base_url: AnyHttpUrl | None = Field(
        default=None, description="Any OpenAI-compatible endpoint, with its /v1; none: OpenAI's own"
    )
    model: str = Field(
        default="gpt-4o-mini", description="Model that answers when a run names none"
    )
    context_tokens: int | None = Field(
        default=None,
        ge=1024,
        description="Context window of the model in tokens; none: by the model's name",
    )
    allowed_models: tuple[str, ...] = Field(
        default=(),
        description="Further models that a run may name, separated by commas; `*`: any",
    )
    timeout: float = Field(
        default=60.0, gt=0, description="Seconds without a byte before a call fails"
    )
    turn_seconds: float = Field(
        default=10.0,
        gt=0,
        description="Seconds in all that one run may wait for structured answers; where answers are "
        "written by hand, 900, and `OPENAI_TIMEOUT` as well",
    )
    max_retries: int = Field(
        default=2, ge=0, description="Times a refused or unanswered call is repeated"
    )
    stream_usage: bool = Field(
        default=True,
        description="Ask for token counts while streaming; a few endpoints refuse that",
    )

    @field_validator("allowed_models", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    def allows(self, model: str) -> bool:
        """Return whether a run may name this model."""
        return model == self.model or not {model, "*"}.isdisjoint(self.allowed_models)

    @property
    def is_configured(self) -> bool:
        return self.api_key is not None or self.base_url is not None


class ModelNotAllowedError(RuntimeError):
    """A run names a model that the settings do not allow.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """

    def __init__(self) -> None:
        # Without the name: this message is also in the log.
        super().__init__(
            "This model is not allowed here: leave out `model`, or name one of "
            "OPENAI_ALLOWED_MODELS."
        )


def requested_model(name: str | None) -> BaseChatModel:
    """Return the model that a client's run names; None: the configured one.

    Raises:
        ModelNotAllowedError: the model is neither the configured one nor in OPENAI_ALLOWED_MODELS.
    """
    settings = ModelSettings.from_environment()
    if name is not None and settings.is_configured and not settings.allows(name):
        raise ModelNotAllowedError
    return chat_model(name, settings=settings)


def chat_model(model: str | None = None, *, settings: ModelSettings | None = None) -> BaseChatModel:
    """Return the model for one run.

    Call it in the run, not at import, so that the current environment counts. Call it in a thread:
    the first call imports the client and loads certificates.

    Args:
        model: name of the model; overrides the settings. The offline model ignores it.
        settings: the endpoint; by default read from the environment.
    """
    settings = settings or ModelSettings.from_environment()
    if not settings.is_configured:
        return OfflineChatModel()
    return _endpoint(settings if model is None else settings.model_copy(update={"model": model}))


@lru_cache(maxsize=32)
def _endpoint(settings: ModelSettings) -> BaseChatModel:
    # Imported late: the client takes half a second to import, which would delay every start and
    # reload, with or without an endpoint.
    from my_agent.endpoint import EndpointChatModel

    return EndpointChatModel(
        model=settings.model,
        # Local endpoints need no key, but the client requires one.
        api_key=settings.api_key or SecretStr("none"),
        base_url=str(settings.base_url) if settings.base_url else None,
        timeout=settings.timeout,
        stream_chunk_timeout=settings.timeout,
        max_retries=settings.max_retries,
        stream_usage=settings.stream_usage,
        # Compatible endpoints support chat completions. Some models of OpenAI need the Responses
        # API.
        use_responses_api=False if settings.base_url else None,
    )
