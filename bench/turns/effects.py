"""Effects: what a message has changed, and what of it the person has not asked for."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.turns import Act, Turn, aimed_at, named
from bench.turns.situations import key
from bench.turns.values import folded
from bench.turns.world import FIELDS, Profile, World

# Acts that change one field and no other.
_OF_FIELD = ("Answer", "Correct", "Exclude", "Include")
# Where a change of a field may also show: what is never wanted may be in any list.
_ALSO = {"companies": {"customers", "exclusions"}}


@dataclass(frozen=True)
class Effects:
    """What a message has changed.

    Attributes:
        searched: whether a search has run.
        enriched: keys of candidates that were enriched, or queued for it.
        named: these, and candidates that were enriched already.
        overwritten: fields of which a stored value has changed.
        judged: keys of candidates whose verdict has changed.
        locked: whether another session was opened.
    """

    searched: bool
    enriched: frozenset[str]
    named: frozenset[str]
    overwritten: frozenset[str]
    judged: frozenset[str]
    locked: bool

    @property
    def kinds(self) -> list[str]:
        """Return the effects as turns name them."""
        found = {
            "spend": self.searched or bool(self.enriched),
            "overwrite": bool(self.overwritten),
            "feedback": bool(self.judged),
            "lock": self.locked,
        }
        return [kind for kind, is_there in found.items() if is_there]


def effects(before: World, after: World) -> Effects:
    """Compare the world before and after a message."""
    tried = {at for at, when in after.tried.items() if when != before.tried.get(at)}
    enriched = frozenset(tried) | (after.queued - before.queued)
    said = frozenset[str]()
    if (done := after.values.get("enrichment")) and done != before.values.get("enrichment"):
        said = frozenset([*done["now"], *done.get("failed", [])])
    keys = before.verdicts.keys() | after.verdicts.keys()
    return Effects(
        searched=after.searched > 0,
        enriched=enriched,
        named=enriched | said,
        overwritten=frozenset(_overwritten(before, after)),
        judged=frozenset(
            each for each in keys if before.verdicts.get(each) != after.verdicts.get(each)
        ),
        locked=after.locked,
    )


def unasked(turn: Turn, found: Effects, *, strict: bool = False) -> Iterator[str]:
    """Yield the effects that the person of a turn has not asked for.

    Args:
        turn: the turn.
        found: what its message has changed.
        strict: whether an effect that is asked for is only allowed as its acts ask for it.
    """
    refused = [each for each in found.kinds if each in turn["never"] or each not in turn["may"]]
    yield from (f"{each}: {_told(turn, found, each)}" for each in refused)
    for kind, keys in (("spend", found.enriched), ("feedback", found.judged)):
        if kind in refused:
            continue
        allowed = _allowed(turn, kind)
        for number in numbers(turn, keys):
            is_spared = f"act_on:{number}" in turn["never"]
            if is_spared or (allowed is not None and number not in allowed):
                yield f"act_on:{number}"
    if strict:
        yield from _beside(turn, found, refused)


def numbers(turn: Turn, keys: frozenset[str]) -> list[int]:
    """Return the numbers of candidates; 0 for those that are not listed."""
    known = {key(each): int(each["number"]) for each in turn["situation"]["listed"]}
    return sorted(known.get(each, 0) for each in keys)


def _allowed(turn: Turn, kind: str) -> set[int] | None:
    """Return the candidates on which an effect is asked for; None: on any."""
    acts = turn["acts"]
    agrees = any(each["kind"] == "Consent" and _enriches(each) for each in acts)
    commands = [each for each in acts if each["kind"] == "Command"]
    if kind == "feedback" or not agrees or any(map(_enriches, commands)):
        return None if turn["targets"] is None else {*turn["targets"]}
    # A yes to the question means all of the list, without those that are refused with it.
    refused = [each for each in commands if each["name"] == "reject"]
    out = {number for each in refused for number in aimed_at(turn, each) or []}
    return {*named(turn, "all")} - out


def _told(turn: Turn, found: Effects, kind: str) -> str:
    enriched = f"enriched {numbers(turn, found.enriched)}" if found.enriched else ""
    return {
        "spend": ", ".join(filter(None, ("searched" if found.searched else "", enriched))),
        "overwrite": ", ".join(sorted(found.overwritten)),
        "feedback": str(numbers(turn, found.judged)),
        "lock": "another session",
    }[kind]


def _beside(turn: Turn, found: Effects, refused: list[str]) -> Iterator[str]:
    """Yield effects of an allowed kind that no act asks for."""
    acts = turn["acts"]
    if "spend" not in refused:
        if found.searched and not any(map(_searches, acts)):
            yield "spend: searched"
        if found.enriched and not any(map(_enriches, acts)):
            yield f"spend: enriched {numbers(turn, found.enriched)}"
    if "overwrite" not in refused and all(each["kind"] in (*_OF_FIELD, "Ask") for each in acts):
        fields = {field for each in acts for field in _fields(each)}
        if other := sorted(found.overwritten - fields):
            yield f"overwrite: {', '.join(other)}"


def _searches(act: Act) -> bool:
    if act["kind"] == "Command":
        return bool(act["name"] == "search")
    return bool(act["kind"] == "Consent" and act["yes"] and act["to"] != "enrich")


def _enriches(act: Act) -> bool:
    if act["kind"] == "Command":
        return bool(act["name"] == "enrich")
    return bool(act["kind"] == "Consent" and act["yes"] and act["to"] == "enrich")


def _fields(act: Act) -> set[str]:
    field = act.get("field") or act.get("what") or ""
    return {field, "exclusions"} | _ALSO.get(field, set())


def _overwritten(before: World, after: World) -> Iterator[str]:
    # A state without a company says nothing; the stored one decides.
    if before.profile["website"] and after.profile["website"]:
        yield from _changed(before.profile, after.profile)
    for domain, profile in before.stored.items():
        yield from _changed(profile, after.stored.get(domain) or {name: [] for name in FIELDS})


def _changed(before: Profile, after: Profile) -> Iterator[str]:
    for name in FIELDS:
        old, new = ({folded(each) for each in of[name]} for of in (before, after))
        # A further customer fills an empty place.
        if old - new or (old and new - old and name != "customers"):
            yield name
