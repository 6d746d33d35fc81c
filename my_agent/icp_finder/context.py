"""What a caller may choose for one run."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass


@dataclass(kw_only=True, frozen=True, config=ConfigDict(extra="forbid"))
class Context:
    """Values of one run; a value given here wins over the environment."""

    model: Annotated[
        str | None, Field(min_length=1, description="Name of the model; none: OPENAI_MODEL")
    ] = None
