"""Options that a client may set for one run of a graph that asks a model."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass


@dataclass(kw_only=True, frozen=True, config=ConfigDict(extra="forbid"))
class Context:
    """Options of one run. A value given here overrides the environment."""

    model: Annotated[
        str | None, Field(min_length=1, description="Name of the model; none: OPENAI_MODEL")
    ] = None
