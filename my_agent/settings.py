"""Base class for settings of the graphs: fields that are environment variables."""

import os
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict


class EnvironmentSettings(BaseModel):
    """Settings read from the environment. A variable's name is `PREFIX` plus the field, in
    capitals.
    """

    PREFIX: ClassVar[str] = ""

    # Validation errors name the field without its value: the client that started the run sees them.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @classmethod
    def from_environment(cls) -> Self:
        """Read the settings from the current environment.

        This does not use pydantic-settings, which takes 0.8 ms: it happens in every run.

        A variable with `_FILE` at its end names a file with the value, such as a mounted secret.

        Raises:
            pydantic.ValidationError: a variable has an invalid value.
            OSError: a file cannot be read.
        """
        named = {name: variable(f"{cls.PREFIX}{name}".upper()) for name in cls.model_fields}
        # An empty variable, as in `OPENAI_API_KEY= make serve`, counts as unset.
        return cls.model_validate({name: value for name, value in named.items() if value})


def variable(name: str) -> str | None:
    """Return the value of an environment variable, or of the file that `NAME_FILE` names.

    Raises:
        OSError: the file cannot be read.
    """
    if path := os.environ.get(f"{name}_FILE"):
        return Path(path).read_text("utf-8").strip()
    return os.environ.get(name)
