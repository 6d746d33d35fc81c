"""Words: what a message without data certainly wants. Pure; it decides only what is said, never a fact.

What is not certain is read by a model, or is a remark.
"""

import re

from my_agent.diagnosis.state import Wish
from my_agent.understanding import words as known

_ALL = re.compile(
    r"\b(?:that(?:'?s| is| was) (?:all|it|everything)|nothing (?:else|more)|no (?:more|other|further) (?:data|logs?|lines)"
    r"|(?:don'?t|do not|haven'?t|have not) (?:have|got) (?:any ?thing|any|more)|there is (?:nothing|no) (?:more|else)"
    r"|das (?:ist|war'?s?) (?:alles|schon alles)|mehr (?:habe|hab) ich nicht|sonst nichts|nichts (?:mehr|weiter)"
    r"|(?:é|e|isso é|isto é) (?:só|tudo)|mais nada|não tenho mais)\b",
    re.IGNORECASE,
)
"""Phrases that end the search for more evidence, in the languages of the product."""
_ORDERS: dict[str, Wish] = {
    "conclude": "conclude", "finish": "conclude", "stop": "conclude", "done": "conclude",
    "decide": "conclude", "enough": "conclude", "fertig": "conclude", "terminar": "conclude",
    "status": "status", "report": "report", "bericht": "report", "relatório": "report",
    "help": "help", "hilfe": "help", "ajuda": "help",
}  # fmt: skip
_FEW = 6
_PROBE = re.compile(
    r"\b(?:check|probe|ping|test|look (?:up|at)|query|try)\s+(?:the\s+)?(?:site\s+|host\s+|url\s+)?"
    r"(?P<target>https?://[^\s,;<>\"')]+|(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]+(?::\d+)?(?:/[^\s,;]*)?)",
    re.IGNORECASE,
)
_MORE = re.compile(r"\s*(?:,|and|,\s*and)\s+(?P<target>https?://[^\s,;<>\"')]+|(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]+)",
                   re.IGNORECASE)  # fmt: skip
_FILE_NAME = re.compile(r"\.(?:log|txt|csv|json|jsonl|py|js|ts|go|java|ya?ml|md)$", re.IGNORECASE)


def wish(words: str, *, has_sources: bool, is_asked: bool) -> Wish | None:
    """Return what a message without data certainly wants, or None.

    Args:
        words: the message.
        has_sources: whether the session has something to read.
        is_asked: whether the question for more evidence is open.
    """
    if not words.strip():
        return "status" if has_sources else "ask"
    talk = known.small_talk(words)
    if talk is not None:
        return "help" if talk == "greeting" else "thanks"
    said = known.tokens(words)
    orders = [_ORDERS[each] for each in said if each in _ORDERS]
    # A few words about one of them ask for it; what ends the search stands alone.
    order = orders[0] if len(orders) == 1 and len(said) <= _FEW else None
    if order == "conclude" and len(said) > 1:
        order = None
    if is_asked and (known.refuses(words) or ("?" not in words and _ALL.search(words))):
        order = "conclude"
    # There is nothing to conclude from, and nothing to tell about, before the first source.
    return "ask" if order in ("conclude", "status", "report") and not has_sources else order


def probes(words: str, most: int) -> list[str]:
    """Return the URLs that a message asks to probe: only those behind a word such as `check`.

    Args:
        words: the message without its data. Hosts that logs name are never probed.
        most: how many at most.
    """
    found: dict[str, None] = {}
    for match in _PROBE.finditer(words):
        named = match["target"]
        end = match.end()
        while named:
            target = named.rstrip(".!?")
            if not _FILE_NAME.search(target):
                found[target if "://" in target else f"https://{target}"] = None
            more = _MORE.match(words, end)
            named, end = (more["target"], more.end()) if more else ("", end)
    return list(found)[:most]
