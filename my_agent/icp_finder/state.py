"""Input and state of the graph `icp_finder`. Neither determines the owner of the data."""

from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.graph import add_messages
from typing_extensions import TypedDict

from my_agent.icp_finder.model import Icp, Site
from my_agent.icp_finder.reading.heard import Heard, Order
from my_agent.icp_finder.reading.questions import Kind, Question
from my_agent.icp_finder.records.decisions import Decisions

Asked = Literal["website", "customers", "industries", "icp"]


class Input(TypedDict):
    """The input that a client may send."""

    # Messages are appended to the thread; a message with a known id replaces that message.
    messages: Annotated[list[AnyMessage], add_messages]


class Answer(TypedDict):
    """An answered question.

    Attributes:
        kind: the kind of question.
        value: the chosen option.
    """

    kind: Kind
    value: str


class Found(TypedDict):
    """The discovery that the thread works with: its rule and the hash of its ICP."""

    rule_name: str
    icp_hash: str


class Shown(TypedDict):
    """A candidate as shown in the conversation.

    Attributes:
        score: from 0 to 1.
        parts: contribution of each feature to the score.
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
    """The result of an enrichment.

    Attributes:
        now: keys of the candidates that were enriched while the user waited.
        failed: keys of the candidates that could not be enriched meanwhile.
        job: id of the background job, if there is one.
        queued: number of candidates of the job.
    """

    now: list[str]
    failed: list[str]
    job: str | None
    queued: int


class Undo(TypedDict):
    """A change that can be taken back, and how things were before it.

    Attributes:
        what: whether it changed the profile, or feedback.
        site: the company's website before.
        customers: its customers before.
        icp: its profile before.
        confirmed: whether they were confirmed.
        said: verdict and reason of each candidate before; None: there was none.
    """

    what: Literal["profile", "feedback"]
    site: Site | None
    customers: list[Site]
    icp: Icp | None
    confirmed: bool
    said: dict[str, list[str] | None]


class State(Input, total=False):
    """The stored state of a thread.

    Attributes:
        tenant_id: tenant of the authenticated user; written by each run, never used for
            authorization.
        thread_id: the thread.
        rule_name: the rule in force in this thread.
        website: website from the thread's metadata, if any.
        is_return_user: whether the company is confirmed, or was stored before this thread.
        decisions: the decision of `return_user_probe` about candidates.
        site: the company's website, once known.
        customers: websites of its customers; five when complete.
        icp: the ideal customer profile, once proposed.
        confirmed: whether the user has confirmed company and ICP.
        heard: what the messages of the run say, checked by code.
        seeded: whether `heard` comes from the payload that the thread was created with.
        change: pending change of the confirmed company or ICP, until the user has chosen.
        answer: the answered question; cleared by the node that asked it.
        asking: the question that waits for a choice.
        waiting: the question that waited when a message came that does not answer it.
        asked: the item that was asked for last, if it is not a choice.
        enough: whether the user has said that there are no more customers.
        fresh: whether the user has started over, and has named no company since.
        without_model: whether the model has just given no reading, so that it is said once.
        offers: orders that were understood, but that the words do not give for sure.
        undo: the changes that can be taken back, the last one at the end.
        reply: the answer to an interrupt, until it is read.
        notes: sentences for the next answer.
        declined: reason of the search that the user has declined.
        consent: whether the user has agreed to search.
        discovery_ready: whether there are candidates to continue with.
        last: the discovery of the last search.
        found: the discovery that this run works with.
        candidates: its best candidates.
        reported: the discovery that the user has seen.
        view: keys of the candidates as the user saw them numbered.
        page: number of candidates of `view` that have been shown.
        enrichment: the last enrichment.
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
    waiting: Question | None
    asked: Asked | None
    enough: bool
    fresh: bool
    without_model: bool
    offers: list[Order]
    undo: list[Undo]
    reply: Any
    notes: list[str]
    declined: str | None
    consent: bool
    discovery_ready: bool
    last: Found | None
    found: Found | None
    candidates: list[Shown]
    reported: Found | None
    view: list[str]
    page: int
    enrichment: Enrichment | None
