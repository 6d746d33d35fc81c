"""Words: what a message without data wants. Pure; it decides only what is said, never a fact."""

import re

from my_agent.diagnosis.state import Wish

# Longer messages tell something rather than choose something.
SHORT = 12

_PATTERNS: tuple[tuple[Wish, re.Pattern[str]], ...] = (
    ("thanks", re.compile(r"^(?:thanks?|thank you|thx|danke|merci|gracias|obrigad[oa]|great|perfect|nice|cool|ok(?:ay)?|got it)\b"
                          r"(?!.*\b(?:but|now|what|why|how|please|can)\b)")),
    # An order is no question about the confidence, and changes nothing.
    ("remark", re.compile(r"\b(?:set|raise|increase|ignore|change|make|mark)\b"
                          r".{0,200}\b(?:confiden\w+|rules?|cause)\b")),
    ("report", re.compile(r"\b(?:report|post-?mortem|write-?up)\b")),
    ("conclude", re.compile(
        r"^(?:no|nope|none|nothing|n|stop|cancel|quit|enough|skip|done)[.!]*$|\bthat'?s (?:all|it|everything)\b|\bnothing (?:else|more)\b"
        r"|\bno (?:more|other|further)\b|\b(?:don'?t|do not|haven'?t) (?:have|got)\b"
        r"|\b(?:don'?t|do not) know\b(?!.{0,200}\byou\b)|\bno idea\b|\bdunno\b|\bnot sure\b|\bconclude\b|\b(?:go ahead|just (?:decide|finish))\b|\b(?:cannot|can'?t) (?:get|provide|share)\b"
    )),
    ("help", re.compile(r"\b(?:help|what can you do|how does this work|who are you|what are you)\b"
                        r"|^(?:hi|hello|hey|good (?:morning|evening|day))\b")),
    ("status", re.compile(
        r"\b(?:status|so far|progress|why|what do you think|how sure|confiden\w+|explain|evidence|summar\w+"
        r"|what (?:is|was|caused|happened)|which (?:service|one)|root cause)\b|\?$"
    )),
)  # fmt: skip
_PROBE = re.compile(
    r"\b(?:check|probe|ping|test|look (?:up|at)|query|try)\s+(?:the\s+)?(?:site\s+|host\s+|url\s+)?"
    r"(?P<target>https?://[^\s,;<>\"')]+|(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]+(?::\d+)?(?:/[^\s,;]*)?)",
    re.IGNORECASE,
)
_MORE = re.compile(r"\s*(?:,|and|,\s*and)\s+(?P<target>https?://[^\s,;<>\"')]+|(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]+)",
                   re.IGNORECASE)  # fmt: skip
_FILE_NAME = re.compile(r"\.(?:log|txt|csv|json|jsonl|py|js|ts|go|java|ya?ml|md)$", re.IGNORECASE)


def wish(words: str, *, has_sources: bool) -> Wish:
    """Return what a message without data wants.

    Args:
        words: the message.
        has_sources: whether the session has something to read.
    """
    if not words.strip():
        return "status" if has_sources else "ask"
    text = " ".join(words.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    short = len(text.split()) <= SHORT
    for name, pattern in _PATTERNS:
        if short and pattern.search(text):
            # There is nothing to conclude from, and nothing to tell about, before the first source.
            early = not has_sources and name in ("status", "report", "conclude", "remark")
            return "ask" if early else name
    return "remark" if has_sources else "ask"


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
