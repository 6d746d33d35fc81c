"""Table: the candidates of a search, and what was said about them."""

from dataclasses import dataclass, field

from my_agent.icp_finder.model import Scored
from my_agent.icp_finder.records import feedback, store
from my_agent.icp_finder.records.feedback import Feedback
from my_agent.icp_finder.search import shortlist
from my_agent.icp_finder.state import Found, Undo


@dataclass
class Table:
    """The candidates of a search, and what a conversation about them changes."""

    tenant_id: str
    rule_name: str
    last: Found | None  # the search
    found: list[Scored]  # all of its candidates, best first
    said: dict[str, Feedback]  # the feedback, by key
    view: list[str] = field(default_factory=list)  # keys, as the user saw them numbered
    page: int = 0  # number of candidates of `view` that have been shown
    undo: list[Undo] = field(default_factory=list)  # the changes that can be taken back

    @property
    def shown(self) -> list[Scored]:
        """Return the candidates without the rejected ones, in the order of the feedback."""
        return feedback.ranked(self.found, self.said)

    @property
    def known(self) -> dict[str, Scored]:
        """Return the candidates by key."""
        return {each.candidate.key: each for each in self.found}


async def load(tenant_id: str, last: Found | None, rule_name: str = "") -> Table:
    """Load the candidates of a search, and the feedback under its rule.

    Args:
        tenant_id: the tenant.
        last: the search; None: there was none.
        rule_name: the rule in force, if there was no search.
    """
    rule_name = last["rule_name"] if last else rule_name
    many = shortlist.MOST
    found = await store.best_candidates(tenant_id, **last, limit=many) if last else []
    return Table(
        tenant_id, rule_name, last, found, await feedback.feedback_of(tenant_id, rule_name)
    )
