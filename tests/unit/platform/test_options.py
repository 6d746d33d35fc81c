"""Options: a field is declared once, and environment, arguments, command line and pages follow."""

import inspect
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from pydantic import Field

from tests.support.processes import GRAPHS
from threadhold import LangGraphPlatform
from threadhold.cli.options import setting_option
from threadhold.config_file import ConfigError
from threadhold.options import PlatformOptions, SharedOptions, shared, takes
from threadhold.settings import BadSettings, Settings, read_settings
from tools import reference

PROJECT = {"graphs": {"echo": f"{GRAPHS}/echo.py:graph"}}
SECRET = "a-secret-that-no-message-shows"


class Wider(SharedOptions):
    """One more option."""

    answers: int = Field(
        default=3,
        gt=0,
        validation_alias="answers_per_day",
        description="Number of answers in a day",
        json_schema_extra={"flag": "--answers"},
    )


class WiderSettings(Settings, Wider):
    """The settings with this option."""


class WiderOptions(PlatformOptions, Wider):
    """The arguments with this option."""


class Host:
    """What takes the arguments."""

    @takes(WiderOptions)
    def __init__(self, options: WiderOptions) -> None:
        self.answers = options.answers


def test_one_field_is_a_variable_an_argument_an_option_and_a_line_of_both_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSWERS_PER_DAY", "5")
    settings = read_settings(WiderSettings)
    assert Host(**shared(settings, WiderOptions)).answers == 5
    assert Host("x.json", answers=6).answers == 6
    assert read_settings(WiderSettings, answers=7).answers == 7
    monkeypatch.setenv("ANSWERS_PER_DAY", "0")
    with pytest.raises(BadSettings, match=r"^ANSWERS_PER_DAY: must be greater than 0"):
        read_settings(WiderSettings)
    with pytest.raises(ConfigError, match=r"^answers: must be greater than 0, not 0$"):
        Host(answers=0)

    @click.command()
    @setting_option("answers", WiderSettings)
    def command(answers: str) -> None:
        click.echo(answers)

    shown = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "--answers TEXT Number of answers in a day. [default: ANSWERS_PER_DAY]" in shown
    monkeypatch.setattr(reference, "PLATFORM", f"{__name__}:WiderOptions")
    monkeypatch.setattr(reference, "SERVER", f"{__name__}:WiderSettings")
    assert (
        "`ANSWERS_PER_DAY`",
        "`3`",
        "`answers`, `--answers`",
        "Number of answers in a day",
    ) in reference.variables(WiderSettings)
    line = "| `answers` | `3` | `ANSWERS_PER_DAY` | Number of answers in a day |"
    assert line in reference.platform_page()


def test_arguments_are_the_fields_and_no_others() -> None:
    parameters = inspect.signature(LangGraphPlatform).parameters
    assert parameters.keys() == PlatformOptions.model_fields.keys()
    assert next(iter(parameters)) == "config"
    with pytest.raises(TypeError, match="n_job"):
        LangGraphPlatform(PROJECT, n_job=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="too many positional"):
        LangGraphPlatform(PROJECT, "sqlite:///x.db")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("redis_url", 5, "must be a valid string, not 5"),
        ("n_jobs", "3", "must be a valid integer, not a string"),
        ("n_jobs", True, "must be a valid integer, not a boolean"),
        ("n_jobs", -1, "must be greater than or equal to 0, not -1"),
        ("durability", "eternal", "must be 'process' or 'power-loss', not 'eternal'"),
        ("public_metrics", "false", "must be a valid boolean, not a string"),
        ("webhook_secrets", SECRET, "must be a list, not one text"),
        ("webhook_secrets", [SECRET], "a webhook secret is `whsec_` and base64"),
        ("old_aes_keys", [SECRET], "a key has 16, 24 or 32 bytes"),
        ("audit_key", [SECRET], "a key of the audit log has at least 32 characters"),
        ("metrics_token", "a-secret", "must have at least 16 characters"),
        ("env", {"KEY": 5}, "must be a valid string, not 5"),
        ("authenticate", lambda: "ann", "must be a function that takes a request"),
        ("public_url", "api.example.com", "must be like 'https://api.example.com'"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_wanted_and_given(
    name: str, value: Any, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        LangGraphPlatform(PROJECT, **{name: value})
    assert str(refused.value) == f"{name}: {message}"
    assert "a-secret" not in str(refused.value)
