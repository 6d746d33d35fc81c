"""Choose the language model: an OpenAI-compatible endpoint, or the offline model."""

from functools import lru_cache
from typing import ClassVar

from langchain_core.language_models import BaseChatModel
from pydantic import AnyHttpUrl, Field, SecretStr

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
    timeout: float = Field(
        default=60.0, gt=0, description="Seconds without a byte before a call fails"
    )
    max_retries: int = Field(
        default=2, ge=0, description="Times a refused or unanswered call is repeated"
    )
    stream_usage: bool = Field(
        default=True,
        description="Ask for token counts while streaming; a few endpoints refuse that",
    )

    @property
    def is_configured(self) -> bool:
        return self.api_key is not None or self.base_url is not None


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
