"""Ordering: which candidates a command is about, and whether the words ask for it for sure. Pure."""

import re
from collections.abc import Sequence

from rapidfuzz import fuzz

from my_agent.icp_finder import values
from my_agent.icp_finder.reading import commands
from my_agent.icp_finder.reading.heard import order
from my_agent.icp_finder.reading.questions import REFUSED
from my_agent.icp_finder.reading.situation import HIDDEN
from my_agent.icp_finder.reading.turn import Turn
from my_agent.understanding import acts as of
from my_agent.understanding import meaning, names, quotes, words

# Characters behind a word of exception in which candidates are looked for.
_REST = 2_000
# Stands before a reason.
_BECAUSE = re.compile(rf"(?:\b(?:{words.BECAUSE})\b|\()[\s,:(-]{{0,8}}$", re.IGNORECASE)


def command(turn: Turn, act: of.Command) -> None:
    """Add what a command asks for."""
    name, heard, asking = act.name, turn.heard, turn.situation.asking
    if name not in commands.COMMANDS:
        turn.drop(act)
        return
    keys, is_said = _keys(turn, act)
    if is_said is None:
        return
    sure = is_said and is_sure(turn, act, name, keys or []) and _says_how_many(turn, act)
    if name in ("undo", "stop") and asking is not None and sure:
        # What waits has not been done: to refuse it is to stop it, or to take it back.
        is_change, is_stop = turn.asks("context_change"), name == "stop"
        if is_stop or is_change:
            turn.choice = REFUSED[asking["kind"]]
        if is_change or (is_stop and not turn.situation.running):
            return
    if name in commands.COSTLY:
        rank, wish = commands.COSTLY.index, heard["wish"]
        if wish is None or rank(name) > rank(wish["name"]):
            heard["wish"] = order(name, keys, act.reason or "", sure=sure)
        return
    does = name in ("undo", "stop") or (name in commands.FEEDBACK and keys)
    heard["orders"].append(order(name, keys, act.reason or "", sure=sure or not does))


def _says_how_many(turn: Turn, act: of.Command) -> bool:
    """Return whether a command about all says so: `enrich 1-3` is not about all, `reject` about none."""
    if isinstance(act.targets, list) or act.name not in (*commands.FEEDBACK, "enrich"):
        return True
    if act.name != "enrich" and not meaning.says_all(act.quote):
        return False
    listed = [each.name for each in turn.situation.listed]
    return bool(act.exceptions) or not names.numbers(act.quote, listed)


def _keys(turn: Turn, act: of.Command) -> tuple[list[str] | None, bool | None]:
    """Return the candidates of a command, and whether its words name them; None: it is unclear which."""
    is_said = True
    shown = [each.key for each in turn.situation.listed if each.number]
    # `enrich` and `yes` are about the best, or those of the question.
    means_all = act.name != "enrich" or bool(act.exceptions) or meaning.says_all(act.quote)
    aimed: list[str] | None = shown if act.targets == "all" and means_all else None
    if isinstance(act.targets, list) and act.targets:
        found = names.resolve(act.targets, act.quote, _meant(turn, act))
        turn.note(found)
        if not found.keys or (act.name in commands.COSTLY and not found.is_whole):
            return None, None
        aimed, is_said = found.keys, not found.unsaid
    if act.exceptions:
        # `Reject 6 and enrich the rest` says elsewhere what it leaves out.
        left_out = names.resolve(act.exceptions, turn.message, turn.situation.listed)
        turn.note(left_out)
        # What is not on the table needs no exception, but then the words may mean another.
        if left_out.unclear or not left_out.keys:
            return None, None
        is_said = is_said and not left_out.unsaid and not left_out.unknown
        is_said = is_said and set(_left_out(turn, act)) <= set(left_out.keys)
        aimed = [each for each in (shown if aimed is None else aimed) if each not in left_out.keys]
    return aimed, is_said


def _meant(turn: Turn, act: of.Command) -> Sequence[names.Listed]:
    """Return what the targets of a command can name: what is restored has been rejected, if anything has."""
    listed = turn.situation.listed
    hidden = [each for each in listed if each.about == HIDDEN and act.name == "restore"]
    is_hidden = hidden and not names.resolve(act.targets or [], act.quote, hidden).unknown
    return hidden if is_hidden else listed


def is_sure(turn: Turn, act: of.Act, name: str, keys: Sequence[str]) -> bool:
    """Return whether the words of an act, and those around it, ask for a command for sure.

    Args:
        turn: the message.
        act: the act.
        name: the command.
        keys: the candidates that it is about.
    """
    agrees = name == "enrich" and turn.asks("enrich") and words.has_agreement(act.quote)
    if not (commands.is_evidence(name, act.quote) or agrees):
        return False
    items = [each for each in turn.situation.listed if each.key in keys]
    exceptions = [str(each) for each in getattr(act, "exceptions", None) or []]
    known = [text for each in items for text in (each.name, each.domain)] + exceptions
    whole = name in commands.COSTLY
    return asks(turn, act, name, known=known, has_exceptions=bool(exceptions), whole=whole)


def asks(
    turn: Turn,
    act: of.Act,
    *named: str,
    known: Sequence[str] = (),
    has_exceptions: bool = False,
    whole: bool = True,
) -> bool:
    """Return whether every word of a message, or of an act's sentence, asks for a command, or agrees to it.

    Doubt, condition, report, negation, a question, and any word that means something else make it
    unsure: then a button asks. What other acts explain, or a reason, does not count.

    Args:
        turn: the message.
        act: the act.
        named: the commands.
        known: names of the candidates that it is about.
        has_exceptions: whether the act leaves something out; then words of exception are its own.
        whole: whether the whole message counts, as for all that costs: one sentence may take back another.
    """
    explained = [*_reason(turn, act), *_explained(turn, act, only_plain=whole), *_beside(turn)]
    message = quotes.blanked(turn.message, explained)
    text = message if whole else quotes.sentence(turn.span(act), message)
    # What costs does not depend on the language that a reader claims.
    rest = meaning.ordered(text, "" if whole else turn.language, has_exceptions=has_exceptions)
    if rest is None:
        return False
    own = {word for each in known for word in names.fold(each).split()}
    return all(_is_known(word, own) for word in words.tokens(commands.without(named, rest)))


def _is_known(word: str, named: set[str]) -> bool:
    known = word in words.YES or word in commands.BESIDE or words.is_filler(word)
    return (
        known
        or names.is_number(word)
        or all(
            any(each == own or fuzz.ratio(each, own) >= names.ALIKE for own in named)
            for each in names.fold(word).split()
        )
    )


def _reason(turn: Turn, act: of.Act) -> list[quotes.Span]:
    """Return where the reason of a command stands, with the word that introduces it.

    A reason excuses feedback. What costs needs none, and a reader may call a condition one. Without a
    word that introduces it, it is none if it denies or doubts, as `do not` does.
    """
    if not isinstance(act, of.Command) or not act.reason or act.name in commands.COSTLY:
        return []
    found = quotes.find(act.reason, turn.message)
    if found is None:
        return []
    if lead := _BECAUSE.search(turn.message[: found[0]]):
        return [(lead.start(), found[1])]
    # `5 out, they sell no food` says what others are not.
    is_statement = quotes.is_apart(found, turn.message) and meaning.states(act.reason)
    is_statement = is_statement and not names.named_in(act.reason, turn.situation.listed)
    return [found] if meaning.is_plain(act.reason) or is_statement else []


def _beside(turn: Turn) -> list[quotes.Span]:
    """Return where a message greets, or repeats by its label what is stored: `regions: Germany`."""
    icp = turn.situation.icp
    return [
        span
        for act, span in turn.placed
        if (isinstance(act, of.SmallTalk) and meaning.is_greeting(act.quote))
        or (
            (fields := values.labelled(act.quote)) is not None
            and all(given == values.of(icp, name) for name, given in fields.items())
        )
    ]


def _left_out(turn: Turn, act: of.Command) -> list[str]:
    """Return the candidates that stand behind the first word of exception in the sentence of a command."""
    sentence = quotes.sentence(turn.span(act), turn.message)
    signs = (words.EXCEPTION.search(sentence), words.NEGATION.search(sentence))
    ends = [sign.end() for sign in signs if sign is not None]
    rest = sentence[min(ends) :][:_REST] if ends else ""
    return names.named_in(rest, turn.situation.listed)


def _explained(turn: Turn, but: of.Act, *, only_plain: bool) -> list[quotes.Span]:
    """Return the quotes of other commands that contain their own evidence and cost nothing.

    A quote with a word of negation or doubt may be about what the judged words ask for.

    Args:
        turn: the message.
        but: the act whose words are judged; quotes that overlap its own explain nothing.
        only_plain: whether quotes with doubt, a negation or a question explain nothing either.
    """
    own = turn.span(but)
    return [
        span
        for act, span in turn.placed
        if isinstance(act, of.Command)
        and (span[1] <= own[0] or own[1] <= span[0])
        and not (only_plain and act.name in commands.COSTLY)
        and commands.is_evidence(act.name, act.quote)
        and (not only_plain or meaning.is_plain(act.quote))
    ]
