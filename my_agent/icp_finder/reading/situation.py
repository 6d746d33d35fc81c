"""Situation: what is on the table when a message comes. A reader sees it, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from my_agent.icp_finder import values
from my_agent.icp_finder.model import Icp
from my_agent.icp_finder.reading.questions import Question
from my_agent.understanding.names import Listed

# Candidates that a reader sees.
SHOWN = 60
HIDDEN = "rejected"


@dataclass(frozen=True)
class Situation:
    """What a message is read against."""

    asking: Question | None = None  # the question that waits for a choice
    # What was asked for last, if it is not a choice: `website`, `customers`, `industries` or `icp`.
    asked: str | None = None
    website: str = ""  # domain of the company; empty while it is unknown
    customers: Sequence[str] = ()  # domains of its customers
    icp: Icp | None = None  # the profile, with the changes that wait for an answer
    listed: Sequence[Listed] = ()  # the candidates that can be named; those shown have numbers
    confirmed: bool = False  # whether company and profile are confirmed
    running: bool = False  # whether candidates are being enriched in the background

    @property
    def open_question(self) -> str:
        """Return the kind of the question that waits, or empty."""
        return self.asking["kind"] if self.asking else self.asked or ""


def described(situation: Situation) -> str:
    """Describe a situation to a model."""
    return "\n".join(filter(None, (_question(situation), *_known(situation), *_listed(situation))))


def _question(situation: Situation) -> str:
    asking = situation.asking
    if asking is not None:
        options = ", ".join(each["value"] for each in asking["options"])
        return f"Open question: {asking['kind']} ({options}): {asking['question']}"
    asked = {
        "website": "website: What is your company's website?",
        "customers": "customers: Which are the websites of your best customers?",
        "industries": "industries: Which industries do you sell to?",
        "icp": "icp: What should be changed about the profile?",
    }.get(situation.asked or "")
    return f"Open question: {asked}" if asked else "No question is open."


def _known(situation: Situation) -> Sequence[str]:
    fields = {name: values.of(situation.icp, name) for name in values.FIELDS}
    lines = [f"website: {situation.website or 'unknown'}"]
    lines.append(f"customers: {', '.join(situation.customers) or 'none'}")
    lines += [f"{name}: {', '.join(given)}" for name, given in fields.items() if given]
    if situation.running:
        lines.append("An enrichment is running.")
    return ["Stored:", *lines]


def _listed(situation: Situation) -> Sequence[str]:
    shown = [each for each in situation.listed if each.number][:SHOWN]
    hidden = [each.name for each in situation.listed if each.about == HIDDEN][:SHOWN]
    lines = ["Listed candidates:"] if shown else []
    for each in shown:
        about = "; ".join(filter(None, (each.domain, each.about)))
        lines.append(f"{each.number}. {each.name}" + (f" ({about})" if about else ""))
    return [*lines, *([f"Rejected, hidden: {'; '.join(hidden)}"] if hidden else [])]
