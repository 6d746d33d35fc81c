"""Input and state of the graph `icp_finder`. Neither determines the owner of the data."""

from typing import Annotated, Any, Literal, NotRequired

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
    """An answered question."""

    kind: Kind
    value: str  # the chosen option


class Found(TypedDict):
    """The discovery that the thread works with: its rule and the hash of its ICP."""

    rule_name: str
    icp_hash: str


class Shown(TypedDict):
    """A candidate as shown in the conversation."""

    key: str
    name: str
    website: str | None
    industry: str
    region: str
    source: str
    score: float  # from 0 to 1
    parts: dict[str, float]  # contribution of each feature to the score


class Enrichment(TypedDict):
    """The result of an enrichment."""

    now: list[str]  # keys of the candidates that were enriched while the user waited
    failed: list[str]  # keys of the candidates that could not be enriched meanwhile
    job: str | None  # id of the background job, if there is one
    queued: int  # number of candidates of the job
    told: NotRequired[bool]  # whether its end has been said


class Undo(TypedDict):
    """A change that can be taken back, and how things were before it: the company, or feedback."""

    what: Literal["profile", "feedback"]
    site: NotRequired[Site | None]
    customers: NotRequired[list[Site]]
    icp: NotRequired[Icp | None]
    confirmed: NotRequired[bool]
    # Verdict and reason of each candidate; None: there was none.
    said: NotRequired[dict[str, list[str] | None]]


class State(Input, total=False):
    """The stored state of a thread."""

    tenant_id: str | None  # of the authenticated user; written by each run, authorizes nothing
    thread_id: str | None
    rule_name: str  # the rule in force in this thread
    website: str | None  # website from the thread's metadata, if any
    is_return_user: bool  # whether the company is confirmed, or was stored before this thread
    decisions: Decisions  # the decision of `return_user_probe` about candidates
    site: Site | None  # the company's website, once known
    customers: list[Site]  # websites of its customers; five when complete
    icp: Icp | None  # the ideal customer profile, once proposed
    confirmed: bool  # whether the user has confirmed company and ICP
    heard: Heard  # what the messages of the run say, checked by code
    seeded: bool  # whether `heard` comes from the payload that the thread was created with
    change: Heard | None  # of the confirmed company or ICP; it waits until the user has chosen
    answer: Answer | None  # the answered question; cleared by the node that asked it
    asking: Question | None  # the question that waits for a choice
    waiting: Question | None  # the question that waited when a message came that does not answer it
    asked: Asked | None  # the item that was asked for last, if it is not a choice
    enough: bool  # whether the user has said that there are no more customers
    fresh: bool  # whether the user has started over, and has named no company since
    without_model: bool  # whether the model has just given no reading, so that it is said once
    offers: list[Order]  # orders that were understood, but that the words do not give for sure
    undo: list[Undo]  # the changes that can be taken back, the last one at the end
    reply: Any  # the answer to an interrupt, until it is read
    notes: list[str]  # sentences for the next answer
    declined: str | None  # reason of the search that the user has declined
    consent: bool  # whether the user has agreed to search
    discovery_ready: bool  # whether there are candidates to continue with
    last: Found | None  # the discovery of the last search
    found: Found | None  # the discovery that this run works with
    candidates: list[Shown]  # its best candidates
    reported: Found | None  # the discovery that the user has seen
    view: list[str]  # keys of the candidates as the user saw them numbered
    page: int  # number of candidates of `view` that have been shown
    enrichment: Enrichment | None  # the last enrichment


def company_of(state: State) -> tuple[Site | None, list[Site], Icp | None]:
    """Return the company's website, its customers and its profile, as far as they are known."""
    return state.get("site"), state.get("customers", []), state.get("icp")


def chosen(state: State, kind: Kind) -> str | None:
    """Return the option that the message chooses of a kind of question."""
    answer = state.get("answer")
    return answer["value"] if answer and answer["kind"] == kind else None
