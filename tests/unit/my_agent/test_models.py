"""Which model is chosen, and what the offline one says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from pydantic import AnyHttpUrl, SecretStr, ValidationError

from my_agent.models import (
    ModelNotAllowedError,
    ModelSettings,
    chat_model,
    requested_model,
)
from my_agent.offline import GIST_LENGTH, OfflineChatModel

ROOT = Path(__file__).parents[3]
ENDPOINT = "http://127.0.0.1:9/v1"


def endpoint_model(model: str | None = None, settings: ModelSettings | None = None) -> ChatOpenAI:
    chosen = chat_model(model, settings=settings)
    assert isinstance(chosen, ChatOpenAI)
    return chosen


def test_nothing_configured_is_offline(no_model: pytest.MonkeyPatch) -> None:
    assert isinstance(chat_model(), OfflineChatModel)
    assert isinstance(chat_model("gpt-4o"), OfflineChatModel)


def test_empty_variables_count_as_unset(no_model: pytest.MonkeyPatch) -> None:
    no_model.setenv("OPENAI_API_KEY", "")
    no_model.setenv("OPENAI_BASE_URL", "")
    assert isinstance(chat_model(), OfflineChatModel)


def test_a_key_alone_means_openai_and_the_documented_model(no_model: pytest.MonkeyPatch) -> None:
    no_model.setenv("OPENAI_API_KEY", "sk-1")
    model = endpoint_model()
    assert model.model_name == "gpt-4o-mini"
    assert model.openai_api_base is None
    assert str(model.root_async_client.base_url) == "https://api.openai.com/v1/"
    assert model.root_async_client.api_key == "sk-1"


def test_an_endpoint_needs_no_key(no_model: pytest.MonkeyPatch) -> None:
    no_model.setenv("OPENAI_BASE_URL", ENDPOINT)
    model = endpoint_model()
    assert model.openai_api_base == ENDPOINT
    assert model.use_responses_api is False


def test_the_environment_of_the_call_counts(no_model: pytest.MonkeyPatch) -> None:
    assert isinstance(chat_model(), OfflineChatModel)
    no_model.setenv("OPENAI_BASE_URL", ENDPOINT)
    no_model.setenv("OPENAI_MODEL", "one")
    assert endpoint_model().model_name == "one"
    no_model.setenv("OPENAI_MODEL", "two")
    assert endpoint_model().model_name == "two"


def test_an_explicit_value_wins_over_the_environment(no_model: pytest.MonkeyPatch) -> None:
    no_model.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/elsewhere")
    no_model.setenv("OPENAI_MODEL", "from-environment")
    no_model.setenv("OPENAI_API_KEY", "from-environment")
    settings = ModelSettings(
        api_key=SecretStr("explicit"),
        base_url=AnyHttpUrl(ENDPOINT),
        model="explicit",
        max_retries=0,
    )
    model = endpoint_model(settings=settings)
    assert (model.model_name, model.openai_api_base) == ("explicit", ENDPOINT)
    assert model.root_async_client.api_key == "explicit"
    assert endpoint_model("named", settings).model_name == "named"
    # Also when the value passed happens to be the default.
    assert endpoint_model("gpt-4o-mini").model_name == "gpt-4o-mini"
    assert endpoint_model().model_name == "from-environment"


def test_calls_are_bounded(no_model: pytest.MonkeyPatch) -> None:
    no_model.setenv("OPENAI_BASE_URL", ENDPOINT)
    client = endpoint_model().root_async_client
    assert (client.timeout, client.max_retries) == (60.0, 2)
    no_model.setenv("OPENAI_TIMEOUT", "1.5")
    no_model.setenv("OPENAI_MAX_RETRIES", "0")
    client = endpoint_model().root_async_client
    assert (client.timeout, client.max_retries) == (1.5, 0)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENAI_BASE_URL", "not a url"),
        ("OPENAI_TIMEOUT", "0"),
        ("OPENAI_TIMEOUT", "soon"),
        ("OPENAI_MAX_RETRIES", "-1"),
    ],
)
def test_a_bad_variable_is_named(no_model: pytest.MonkeyPatch, variable: str, value: str) -> None:
    no_model.setenv(variable, value)
    with pytest.raises(ValidationError, match=variable.removeprefix("OPENAI_").lower()):
        chat_model()


def test_the_key_does_not_show(no_model: pytest.MonkeyPatch) -> None:
    no_model.setenv("OPENAI_API_KEY", "sk-secret")
    assert "sk-secret" not in repr(ModelSettings.from_environment())
    assert "sk-secret" not in repr(chat_model())


CONVERSATION: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("What is a thread?"),
    AIMessage("A conversation."),
    HumanMessage("And\n\n  a run?"),
]


def test_the_offline_model_says_so_and_repeats_the_question() -> None:
    answer = OfflineChatModel().invoke(CONVERSATION)
    assert "no language model is configured" in answer.text
    assert "OPENAI_API_KEY" in answer.text
    assert "“And a run?”" in answer.text
    assert "message 2 from you" in answer.text
    assert answer.text == OfflineChatModel().invoke(CONVERSATION).text


async def test_the_offline_model_streams_word_by_word() -> None:
    model = OfflineChatModel()
    whole = model.invoke(CONVERSATION).text
    streamed = [chunk.text async for chunk in model.astream(CONVERSATION)]
    assert "".join(streamed) == "".join(chunk.text for chunk in model.stream(CONVERSATION)) == whole
    assert [token for token in streamed if token] == [
        *(f"{word} " for word in whole.split(" ")[:-1]),
        whole.split(" ")[-1],
    ]


@pytest.mark.parametrize("text", ["word " * 1000, "x" * 1000])
def test_the_offline_model_cuts_a_long_question(text: str) -> None:
    answer = OfflineChatModel().invoke(text).text
    assert " …”" in answer
    assert len(answer) < GIST_LENGTH + 300


@pytest.mark.parametrize("messages", [[], [SystemMessage("Be brief.")], [HumanMessage("  ")]])
def test_the_offline_model_answers_without_a_question(messages: list[BaseMessage]) -> None:
    assert "You wrote no text." in OfflineChatModel().invoke(messages).text


def test_the_offline_model_reads_the_text_of_mixed_content() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    message = HumanMessage([{"type": "text", "text": "What is this?"}, image])
    assert "“What is this?”" in OfflineChatModel().invoke([message]).text


def test_neither_a_start_nor_the_offline_model_waits_for_the_client() -> None:
    script = (
        "import sys, my_agent.chat, my_agent.models; "
        "my_agent.models.chat_model(); "
        "sys.exit('openai' in sys.modules)"
    )
    bare = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", script], env=bare, check=True)


def test_runs_may_only_name_allowed_models(no_model: pytest.MonkeyPatch) -> None:
    # The offline model has no name and costs nothing.
    assert isinstance(requested_model("gpt-expensive"), OfflineChatModel)
    no_model.setenv("OPENAI_BASE_URL", ENDPOINT)
    no_model.setenv("OPENAI_MODEL", "ours")
    for allowed, refused in (("", "other"), ("small, large", "smal"), ("small", "")):
        no_model.setenv("OPENAI_ALLOWED_MODELS", allowed)
        with pytest.raises(ModelNotAllowedError, match="OPENAI_ALLOWED_MODELS"):
            requested_model(refused)
    no_model.setenv("OPENAI_ALLOWED_MODELS", "small, large")
    named = [requested_model(name) for name in (None, "ours", "small", "large")]
    assert [getattr(each, "model_name", None) for each in named] == [
        "ours",
        "ours",
        "small",
        "large",
    ]
    no_model.setenv("OPENAI_ALLOWED_MODELS", "*")
    assert isinstance(requested_model("anything"), ChatOpenAI)
