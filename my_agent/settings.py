"""Settings of the graphs: fields that are environment variables."""

import os
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict


class EnvironmentSettings(BaseModel):
    """Fields that the environment gives; a variable is `PREFIX` and the field, in capitals."""

    PREFIX: ClassVar[str] = ""

    # An error names the field without its value: it reaches whoever started the run.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @classmethod
    def from_environment(cls) -> Self:
        """What the environment says now.

        Read by hand: pydantic-settings takes 0.8 ms, and this happens once a run.

        Raises:
            pydantic.ValidationError: a variable does not parse.
        """
        named = {name: os.environ.get(f"{cls.PREFIX}{name}".upper()) for name in cls.model_fields}
        # An empty variable, as in `OPENAI_API_KEY= make serve`, means that there is none.
        return cls.model_validate({name: value for name, value in named.items() if value})
