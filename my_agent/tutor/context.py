"""Options that a client may set for one run of the graph `tutor`."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from my_agent.tutor import prompts


@dataclass(kw_only=True, frozen=True, config=ConfigDict(extra="forbid"))
class Context:
    """Options of one run. A value given here overrides the environment."""

    model: Annotated[
        str | None,
        Field(min_length=1, description="Name of the model that answers; none: OPENAI_MODEL"),
    ] = None
    correction_model: Annotated[
        str | None,
        Field(
            min_length=1,
            description="Name of the model that corrects; none: TUTOR_CORRECTION_MODEL",
        ),
    ] = None
    system_prompt: Annotated[str, Field(description="System prompt of the model that answers")] = (
        prompts.SYSTEM
    )
