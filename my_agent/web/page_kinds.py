"""Kinds of pages: tell a company's own website from pages about other companies. Pure functions.

A search for companies also finds job boards, directories, market reports and articles. Domains that
are known decide at once. Otherwise words of the domain, the path, the title and the text are counted,
because a company's own page may contain any one of them.
"""

import re
from collections import Counter
from typing import Literal, NamedTuple, cast

from my_agent.reference import table

Kind = Literal["company", "job_board", "directory", "report", "article", "social", "public"]

# Domains whose pages are never a company's own website.
KNOWN: dict[str, Kind] = {
    row["domain"]: cast("Kind", row["kind"]) for row in table("my_agent.web", "page_kinds.csv")
}


class _Signs(NamedTuple):
    """Patterns that point to a kind of page, by the place where they are looked for."""

    domain: str  # a word of the domain's name, such as `jobs` in `sgjobs.com`
    path: str
    title: str
    body: str


_SIGNS: dict[Kind, _Signs] = {
    "job_board": _Signs(
        domain=r"jobs?(?![a-z]*(?:ber|bing))|careers?|vacanc|hiring|recruit(?:er|ing)?board",
        path=r"/(?:jobs?|vacanc(?:y|ies)|job-search|jobs-in[\w-]*)(?:/|$|\?)",
        title=r"\bjobs? (?:in|near|at|vacanc|openings?|search)\b|\b\d[\d,]*\+? [\w &]*jobs\b"
        r"|\b(?:job|career) (?:vacanc|opportunit|portal|listing|openings?)"
        r"|\bvacanc(?:y|ies)\b|\bnow hiring\b|\bsalar(?:y|ies)\b",
        body=r"\bapply (?:now|today|for)\b|\bjob (?:seekers?|alerts?|openings?|listings?|ads?)\b"
        r"|\bfind (?:your next|a) job\b|\bnew jobs added\b|\bcompare salaries\b",
    ),
    "directory": _Signs(
        domain=r"director(?:y|ies)|yellowpage|listings?|b2b|suppliers?|companieslist|bizlist"
        r"|top\d+",
        path=r"/(?:director(?:y|ies)|companies|suppliers|manufacturers|listings?|categor(?:y|ies)"
        r"|agencies|search|rankings?|best[\w-]*|top-?\d[\w-]*)(?:/|$|\?)",
        title=r"\b(?:top|best)\s+\d+\b"
        r"|^\W*(?:the\s+)?\d+\+?\s+(?:best|top|leading|biggest|largest)"
        # Of several, and not a name such as `Best Denki` or `Top Glove`.
        r"|^\W*(?:the\s+)?(?:top|best|leading|largest|biggest)\b.*\w{3,}s\b"
        r".*\b(?:in|near|of|for|from|to|by)\b"
        r"|^\W*(?:the\s+)?(?:top|best|leading|largest|biggest)\b.*(?:companies|suppliers"
        r"|manufacturers|providers|firms|agencies|distributors|makers|startups|brands)\b"
        r"|\blist of\b|^\W*list\b"
        r"|\bdirector(?:y|ies)\b|\b(?:companies|suppliers|manufacturers|providers|firms"
        r"|agencies|distributors|exporters|importers|wholesalers|startups) (?:in|near|of|from)\b"
        r"|\balternatives\b|\breviews? (?:of|and)\b|\bcompare\b|\bvs\.?\s|\byellow pages\b"
        r"|^\W*\d+\s+[\w ]*(?:companies|suppliers|manufacturers|firms|ways|tools)\b",
        body=r"\b(?:browse|compare|find|discover|search) (?:the )?"
        r"(?:best |top |verified |\d[\d,]* )*"
        r"(?:companies|suppliers|manufacturers|vendors|providers|agencies|businesses)\b"
        r"|\b(?:verified|listed) (?:companies|suppliers|businesses|reviews)\b"
        r"|\bcontact (?:details|information) of\b|\bhere (?:are|is) (?:the|a list)\b"
        r"|\b(?:list|directory|ranking) of\b|\badd your (?:company|business|listing)\b"
        r"|\b\d[\d,]*\+? (?:companies|suppliers|manufacturers|businesses) (?:in|listed|found)\b",
    ),
    "report": _Signs(
        domain=r"marketresearch|marketreports?|marketinsights?|marketwatch|marketintelligence",
        path=r"/(?:reports?|market-reports?|industry-analysis|research-reports?|statistics)(?:/|$)",
        title=r"\bmarket (?:size|share|report|analysis|forecast|research|outlook|trends|growth"
        r"|overview|insights)\b|\bindustry (?:report|analysis|outlook|trends|statistics|overview)\b"
        r"|\bforecasts? (?:to|20)\b|\b20\d\d\s*-\s*20\d\d\b|\bcagr\b|\bstatistics\b",
        body=r"\bcagr\b|\bmarket (?:is|was) (?:expected|projected|estimated|valued)\b"
        r"|\b(?:usd|us\$) [\d.]+ (?:billion|million)\b|\bforecast period\b"
        r"|\bdownload (?:the )?(?:free )?(?:sample|report)\b|\bmarket (?:size|share)\b",
    ),
    "article": _Signs(
        domain=r"news|magazine|wiki|blog|gazette|journal",
        path=r"/(?:wiki|news|article|articles|blog|blogs|press-releases?|20[12]\d)(?:/|$)",
        title=r"^\W*(?:how|what|why|when|guide|a guide|everything)\b|\bguide to\b|\bexplained\b"
        r"|\bnews\b|\bwikipedia\b|\bpress release\b|\?\s*$|\btips\b",
        body=r"\bin this (?:article|guide|post|blog)\b|\bread more\b|\bmin(?:ute)?s? read\b"
        r"|\bpublished (?:on|by)\b|\breported (?:on|that)\b",
    ),
}
# Points of a sign, and the number of signs that count, by the place.
_POINTS = {"domain": (1, 1), "path": (1, 1), "title": (2, 1), "body": (1, 2)}
# A company speaks about itself.
_OWN = re.compile(
    r"\b(?:we|our|us)\b|\bcontact us\b|\babout us\b|\bofficial (?:site|website)\b|\bhomepage\b",
    re.IGNORECASE,
)
_OWN_PAGE = re.compile(r"\b(?:about us|contact us|careers at|join our team|home)\b", re.IGNORECASE)
# Characters of a title and of an excerpt that are looked at.
LONGEST_TITLE, LONGEST_BODY = 300, 2000
# Points from which a page is not a company's own.
ENOUGH = 2


def kind(domain: str, url: str, title: str, body: str) -> Kind:
    """Return the kind of a page that a search has found.

    Args:
        domain: its registrable domain.
        url: its address.
        title: its title.
        body: the excerpt that the search engine shows.
    """
    if domain in KNOWN:
        return KNOWN[domain]
    # Some patterns look for two words in any distance.
    title, body = title[:LONGEST_TITLE], body[:LONGEST_BODY]
    if re.search(r"\.(?:gov|edu|mil)$|\.(?:gov|edu|ac|mil)\.\w{2}$", domain):
        return "public"
    path = url.partition("://")[2].partition("/")[2]
    texts = {"domain": domain.partition(".")[0], "path": f"/{path}", "title": title, "body": body}
    points: Counter[Kind] = Counter()
    for place, text in texts.items():
        each, most = _POINTS[place]
        for what, signs in _SIGNS.items():
            pattern: str = getattr(signs, place)
            if found := re.findall(pattern, text, re.IGNORECASE):
                points[what] += each * min(len(found), most)
    # A sentence about itself speaks for a company, as long as the title does not say otherwise.
    own = int(bool(_OWN.search(body))) + 2 * int(bool(_OWN_PAGE.search(title)))
    best = max(points, key=lambda each: points[each], default=None)
    return best if best is not None and points[best] - own >= ENOUGH else "company"
