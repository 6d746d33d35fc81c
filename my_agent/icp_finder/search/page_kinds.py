"""Kinds of pages: tell a company's own website from pages about other companies. Pure functions.

A search for companies also finds job boards, directories, market reports and articles. Domains that
are known decide at once. Otherwise words of the domain, the path, the title and the text are counted,
because a company's own page may contain any one of them.
"""

import re
from typing import Literal

Kind = Literal["company", "job_board", "directory", "report", "article", "social", "public"]

# Domains whose pages are never a company's own website.
KNOWN: dict[str, Kind] = {
    domain: kind  # type: ignore[misc]
    for kind, domains in {
        "job_board": """indeed.com glassdoor.com glassdoor.sg jobstreet.com jobstreet.com.sg jobsdb.com
            monster.com monster.com.sg ziprecruiter.com jooble.org careerjet.sg mycareersfuture.gov.sg
            simplyhired.com reed.co.uk stepstone.de totaljobs.com jobscentral.com.sg foundit.sg
            naukri.com talent.com adzuna.sg adzuna.com seek.com.au wellfound.com efinancialcareers.sg
            fastjobs.sg careerbuilder.com""",
        "directory": """yelp.com yellowpages.com yellowpages.com.sg clutch.co g2.com capterra.com
            goodfirms.co trustpilot.com tripadvisor.com crunchbase.com zoominfo.com kompass.com
            dnb.com sgpbusiness.com recordowl.com europages.com europages.co.uk thomasnet.com
            rocketreach.co apollo.io tracxn.com pitchbook.com owler.com craft.co cbinsights.com
            alibaba.com globalsources.com indiamart.com made-in-china.com panjiva.com volza.com
            ensun.io designrush.com sortlist.com thebestsingapore.com manta.com bbb.org
            companiesmarketcap.com f6s.com opencorporates.com streetdirectory.com yell.com
            cylex.us hotfrog.sg importyeti.com lusha.com signalhire.com leadiq.com theorg.com
            freightnet.com environmental-expert.com softwareadvice.com getapp.com""",
        "report": """statista.com marketsandmarkets.com mordorintelligence.com ibisworld.com
            grandviewresearch.com fortunebusinessinsights.com researchandmarkets.com
            euromonitor.com technavio.com alliedmarketresearch.com precedenceresearch.com imarcgroup.com
            gminsights.com transparencymarketresearch.com kenresearch.com verifiedmarketresearch.com
            marketresearchfuture.com futuremarketinsights.com 6wresearch.com gartner.com forrester.com
            globenewswire.com prnewswire.com businesswire.com openpr.com""",
        "article": """wikipedia.org medium.com bloomberg.com forbes.com reuters.com cnbc.com bbc.com
            bbc.co.uk straitstimes.com channelnewsasia.com businesstimes.com.sg techcrunch.com
            investopedia.com substack.com grokipedia.com britannica.com hubspot.com nytimes.com
            ft.com theguardian.com businessinsider.com vulcanpost.com tech.eu wordpress.com
            blogspot.com sciencedirect.com researchgate.net scribd.com slideshare.net""",
        "social": """linkedin.com facebook.com instagram.com youtube.com x.com twitter.com reddit.com
            quora.com tiktok.com pinterest.com threads.net github.com google.com amazon.com
            t.me whatsapp.com meetup.com eventbrite.com carousell.sg shopee.sg lazada.sg""",
        "public": """companieshouse.gov.uk data.gov.sg acra.gov.sg bizfile.gov.sg enterprisesg.gov.sg
            singstat.gov.sg edb.gov.sg trade.gov europa.eu worldbank.org oecd.org wto.org""",
    }.items()
    for domain in domains.split()
}

# A word of a domain's name, such as `jobs` in `sgjobs.com`, with what it points to.
_DOMAIN: tuple[tuple[Kind, str], ...] = (
    ("job_board", r"jobs?(?![a-z]*(?:ber|bing))|careers?|vacanc|hiring|recruit(?:er|ing)?board"),
    (
        "directory",
        r"director(?:y|ies)|yellowpage|listings?|b2b|suppliers?|companieslist|bizlist|top\d+",
    ),
    ("report", r"marketresearch|marketreports?|marketinsights?|marketwatch|marketintelligence"),
    ("article", r"news|magazine|wiki|blog|gazette|journal"),
)
_PATH: tuple[tuple[Kind, str], ...] = (
    ("job_board", r"/(?:jobs?|vacanc(?:y|ies)|job-search|jobs-in[\w-]*)(?:/|$|\?)"),
    (
        "directory",
        (
            r"/(?:director(?:y|ies)|companies|suppliers|manufacturers|listings?|categor(?:y|ies)"
            r"|agencies|search|rankings?|best[\w-]*|top-?\d[\w-]*)(?:/|$|\?)"
        ),
    ),
    (
        "report",
        r"/(?:reports?|market-reports?|industry-analysis|research-reports?|statistics)(?:/|$)",
    ),
    ("article", r"/(?:wiki|news|article|articles|blog|blogs|press-releases?|20[12]\d)(?:/|$)"),
)
_TITLE: tuple[tuple[Kind, str, int], ...] = (
    (
        "job_board",
        (
            r"\bjobs? (?:in|near|at|vacanc|openings?|search)\b|\b\d[\d,]*\+? [\w &]*jobs\b"
            r"|\b(?:job|career) (?:vacanc|opportunit|portal|listing|openings?)"
            r"|\bvacanc(?:y|ies)\b|\bnow hiring\b|\bsalar(?:y|ies)\b"
        ),
        2,
    ),
    (
        "directory",
        (
            r"\b(?:top|best)\s+\d+\b|^\W*(?:the\s+)?\d+\+?\s+(?:best|top|leading|biggest|largest)"
            # Of several, and not a name such as `Best Denki` or `Top Glove`.
            r"|^\W*(?:the\s+)?(?:top|best|leading|largest|biggest)\b.*\w{3,}s\b.*\b(?:in|near|of|for|from|to|by)\b"
            r"|^\W*(?:the\s+)?(?:top|best|leading|largest|biggest)\b.*(?:companies|suppliers"
            r"|manufacturers|providers|firms|agencies|distributors|makers|startups|brands)\b"
            r"|\blist of\b|^\W*list\b"
            r"|\bdirector(?:y|ies)\b|\b(?:companies|suppliers|manufacturers|providers|firms"
            r"|agencies|distributors|exporters|importers|wholesalers|startups) (?:in|near|of|from)\b"
            r"|\balternatives\b|\breviews? (?:of|and)\b|\bcompare\b|\bvs\.?\s"
            r"|\byellow pages\b|^\W*\d+\s+[\w ]*(?:companies|suppliers|manufacturers|firms|ways|tools)\b"
        ),
        2,
    ),
    (
        "report",
        (
            r"\bmarket (?:size|share|report|analysis|forecast|research|outlook|trends|growth|overview"
            r"|insights)\b|\bindustry (?:report|analysis|outlook|trends|statistics|overview)\b"
            r"|\bforecasts? (?:to|20)\b|\b20\d\d\s*-\s*20\d\d\b|\bcagr\b|\bstatistics\b"
        ),
        2,
    ),
    (
        "article",
        (
            r"^\W*(?:how|what|why|when|guide|a guide|everything)\b|\bguide to\b|\bexplained\b"
            r"|\bnews\b|\bwikipedia\b|\bpress release\b|\?\s*$|\btips\b"
        ),
        2,
    ),
)
_BODY: tuple[tuple[Kind, str, int], ...] = (
    (
        "job_board",
        (
            r"\bapply (?:now|today|for)\b|\bjob (?:seekers?|alerts?|openings?|listings?|ads?)\b"
            r"|\bfind (?:your next|a) job\b|\bnew jobs added\b|\bcompare salaries\b"
        ),
        1,
    ),
    (
        "directory",
        (
            r"\b(?:browse|compare|find|discover|search) (?:the )?(?:best |top |verified |\d[\d,]* )*"
            r"(?:companies|suppliers|manufacturers|vendors|providers|agencies|businesses)\b"
            r"|\b(?:verified|listed) (?:companies|suppliers|businesses|reviews)\b"
            r"|\bcontact (?:details|information) of\b|\bhere (?:are|is) (?:the|a list)\b"
            r"|\b(?:list|directory|ranking) of\b|\badd your (?:company|business|listing)\b"
            r"|\b\d[\d,]*\+? (?:companies|suppliers|manufacturers|businesses) (?:in|listed|found)\b"
        ),
        1,
    ),
    (
        "report",
        (
            r"\bcagr\b|\bmarket (?:is|was) (?:expected|projected|estimated|valued)\b"
            r"|\b(?:usd|us\$) [\d.]+ (?:billion|million)\b|\bforecast period\b|\bdownload (?:the )?(?:free )?(?:sample|report)\b"
            r"|\bmarket (?:size|share)\b"
        ),
        1,
    ),
    (
        "article",
        (
            r"\bin this (?:article|guide|post|blog)\b|\bread more\b|\bmin(?:ute)?s? read\b"
            r"|\bpublished (?:on|by)\b|\breported (?:on|that)\b"
        ),
        1,
    ),
)
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
    if domain.endswith((".gov", ".edu", ".mil")) or re.search(
        r"\.(?:gov|edu|ac|mil)\.\w{2}$", domain
    ):
        return "public"
    points: dict[Kind, int] = {}

    def add(what: Kind, count: int) -> None:
        points[what] = points.get(what, 0) + count

    name, path = domain.partition(".")[0], url.partition("://")[2].partition("/")[2]
    for what, pattern in _DOMAIN:
        if re.search(pattern, name):
            add(what, 1)
    for what, pattern in _PATH:
        if re.search(pattern, f"/{path}".lower()):
            add(what, 1)
    for what, pattern, count in _TITLE:
        if re.search(pattern, title, re.IGNORECASE):
            add(what, count)
    for what, pattern, count in _BODY:
        add(what, count * min(len(re.findall(pattern, body, re.IGNORECASE)), 2))
    none: Kind = "company"
    best = max(points, key=lambda each: points[each], default=none)
    # A sentence about itself speaks for a company, as long as the title does not say otherwise.
    own = int(bool(_OWN.search(body))) + 2 * int(bool(_OWN_PAGE.search(title)))
    return best if points.get(best, 0) - own >= ENOUGH else "company"
