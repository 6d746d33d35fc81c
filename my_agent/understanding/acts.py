"""Acts: what one message does, in its order. A reader writes them; each quotes the words that say it."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

# The most acts of a message, values of an act, and characters of a text in it.
MOST, VALUES, LENGTH = 20, 40, 500


def _listed(value: object) -> object:
    """Return a single text, or nothing, as a list: models write both. Long texts are cut."""
    many = [] if value is None else [value] if isinstance(value, str) else value
    return (
        [each[:200] if isinstance(each, str) else each for each in many]
        if isinstance(many, list)
        else many
    )


Values = Annotated[list[str], BeforeValidator(_listed), Field(max_length=VALUES)]


class _Act(BaseModel):
    """What every act has.

    Attributes:
        quote: the words of the message that say it, unchanged.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    quote: str = Field(max_length=4_000)


class Answer(_Act):
    """Gives a value that was not there."""

    kind: Literal["Answer"]
    field: str = Field(max_length=40)
    value: Values


class Correct(_Act):
    """Replaces values: those of `instead_of`, or all of the field."""

    kind: Literal["Correct"]
    field: str = Field(max_length=40)
    value: Values
    instead_of: Values = Field(default_factory=list)


class Exclude(_Act):
    """Takes values out, or says that they are never wanted."""

    kind: Literal["Exclude"]
    what: str = Field(max_length=40)
    value: Values


class Include(_Act):
    """Adds values to those that are there."""

    kind: Literal["Include"]
    what: str = Field(max_length=40)
    value: Values


class Command(_Act):
    """Asks for an action.

    Attributes:
        targets: numbers and names of listed items; `all`; or None if the message names none.
        exceptions: numbers and names that are left out.
        reason: why, or the words to filter by.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    kind: Literal["Command"]
    name: str = Field(max_length=40)
    targets: list[int | str] | Literal["all"] | None = None
    exceptions: list[int | str] | None = Field(default=None, alias="except")
    reason: str | None = Field(default=None, max_length=LENGTH)


class Consent(_Act):
    """Agrees to the open question, or refuses it."""

    kind: Literal["Consent"]
    yes: bool
    to: str = Field(default="", max_length=40)


class Ask(_Act):
    """Asks something that is answered in words."""

    kind: Literal["Ask"]
    about: str = Field(default="other", max_length=100)


class Dispute(_Act):
    """Says that something is wrong, without saying what would be right."""

    kind: Literal["Dispute"]
    target: str = Field(default="", max_length=LENGTH)


class SmallTalk(_Act):
    """Greets, thanks, praises or complains."""

    kind: Literal["SmallTalk"]


class Unclear(_Act):
    """Words that the reader does not understand."""

    kind: Literal["Unclear"]


Act = Answer | Correct | Exclude | Include | Command | Consent | Ask | Dispute | SmallTalk | Unclear


class Reading(BaseModel):
    """What a reader finds in a message.

    Attributes:
        language: code of the message's language, such as `pt`.
        acts: the acts, in the order of the message.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    language: str = Field(default="", max_length=20)
    acts: list[Act] = Field(max_length=MOST)
