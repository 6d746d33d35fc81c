"""What the graph takes and what it keeps. Whose it is comes from neither."""

from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.graph import add_messages
from typing_extensions import TypedDict

from my_agent.icp_finder.answers import Kind, Question
from my_agent.icp_finder.decisions import Decisions
from my_agent.icp_finder.heard import Heard
from my_agent.icp_finder.model import Icp, Site

Asked = Literal["website", "customers", "industries", "icp"]


class Input(TypedDict):
    """What a caller may send."""

    # New messages only: they are appended to those of the thread, or replace one by its id.
    messages: Annotated[list[AnyMessage], add_messages]


class Answer(TypedDict):
    """An answered question.

    Attributes:
        value: the option that was chosen.
    """

    kind: Kind
    value: str


class Found(TypedDict):
    """Which candidates the thread works with: those of a rule and an ICP."""

    rule_name: str
    icp_hash: str


class Shown(TypedDict):
    """A candidate as the conversation shows it.

    Attributes:
        score: from 0 to 1.
        parts: what each feature adds to the score.
    """

    key: str
    name: str
    website: str | None
    industry: str
    region: str
    source: str
    score: float
    parts: dict[str, float]


class Enrichment(TypedDict):
    """What has been enriched.

    Attributes:
        now: keys of the candidates enriched while the user waited.
        job: the background job's id, if there is one.
        queued: how many candidates the job has.
    """

    now: list[str]
    job: str | None
    queued: int


class State(Input, total=False):
    """What a thread keeps.

    Attributes:
        tenant_id: of the authenticated user; written by each run, never read as a permission.
        rule_name: the rule in force in this thread.
        website: of the company that the thread was opened for, if its metadata says.
        decisions: what to do about candidates, as the probe sees it.
        site: the company's website, once it is known.
        customers: its customers' websites, five in the end.
        icp: the ideal customer profile, once there is a proposal.
        confirmed: whether the user has agreed to all of that.
        heard: what the run's messages say; taken by the first node that can use it.
        seeded: whether that is what the thread was opened with.
        change: what would change the confirmed company or ICP, until the user has chosen.
        answer: the answered question; taken by the node that asked.
        asking: the question that waits for a choice.
        asked: what was asked for last that is no choice.
        unclear: whether the last reply answered nothing.
        reply: what an interrupt was answered with, until it is read.
        notes: sentences for the next answer.
        declined: the reason of the search that the user did not want.
        consent: whether the user has agreed to search.
        discovery_ready: whether there are candidates to go on with.
        last: the candidates that the last search left.
        found: the candidates that this run goes on with.
        candidates: the best of them.
        reported: which ones the user has seen.
    """

    tenant_id: str | None
    thread_id: str | None
    rule_name: str
    website: str | None
    is_return_user: bool
    decisions: Decisions
    site: Site | None
    customers: list[Site]
    icp: Icp | None
    confirmed: bool
    heard: Heard
    seeded: bool
    change: Heard | None
    answer: Answer | None
    asking: Question | None
    asked: Asked | None
    unclear: bool
    reply: Any
    notes: list[str]
    declined: str | None
    consent: bool
    discovery_ready: bool
    last: Found | None
    found: Found | None
    candidates: list[Shown]
    reported: Found | None
    enrichment: Enrichment | None
