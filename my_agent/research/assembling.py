"""Assembling: claims from statements, the analysis from claims, and the report from both.

Nothing here invents words: a claim is a quote or has been checked against one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from my_agent.research import claims, facts
from my_agent.research.extraction import KINDS, Statement
from my_agent.research.ledger import Ledger, renumbered
from my_agent.research.model import (
    SUPPORTED,
    Analysis,
    Claim,
    CrawledPage,
    Disagreement,
    LedgerEntry,
    Report,
    Section,
)
from my_agent.research.text import cut, sentences, words

OVERVIEW = 499
TITLES = {
    "facts": "Key findings",
    "features": "Features",
    "competitors": "Competitors",
    "strengths": "Strengths",
    "weaknesses": "Weaknesses",
    "opportunities": "Opportunities",
    "threats": "Threats",
}
SWOT = ("strengths", "weaknesses", "opportunities", "threats")
# Share of equal words from which two supported claims say the same.
_SAME = 0.9


@dataclass(frozen=True)
class Finding:
    """A claim and its kind, one of `extraction.KINDS`."""

    claim: Claim
    kind: str


@dataclass(frozen=True)
class Findings:
    """What the analyzer hands to the reporter."""

    findings: tuple[Finding, ...]
    disagreements: tuple[Disagreement, ...]
    ledger: tuple[LedgerEntry, ...]


def by_statements(
    statements: Sequence[Statement],
    pages: Mapping[str, CrawledPage],
    ledger: Ledger,
    context: Sequence[Statement] = (),
) -> Findings:
    """Return the findings of statements: each is its own quote.

    Args:
        statements: the statements, the best first.
        pages: the pages that were read, by address.
        ledger: the ledger, to which the quotes are added.
        context: further statements, which may show that one of the first is out of date.
    """
    kept, conflicts = facts.resolve([*statements, *context])
    kept = [each for each in kept if each in statements]
    found: list[Finding] = []
    for group in _same(kept):
        entries = [ledger.add(each.page, each.start, each.end).id for each in group]
        claim = claims.judge(group[0].text, entries, ledger, pages)
        found.append(Finding(claim, group[0].kind))
    disagreements = [
        Disagreement(
            each.subject,
            tuple(
                (
                    facts.value_of(one),
                    one.page.published or "",
                    ledger.add(one.page, one.start, one.end).id,
                )
                for one in each.statements
            ),
        )
        for each in conflicts
    ]
    return Findings(tuple(found), tuple(disagreements), ledger.entries)


def corroborated(
    found: Iterable[Finding], pages: Mapping[str, CrawledPage], ledger: Ledger
) -> tuple[Finding, ...]:
    """Return the findings with further entries: sentences of other pages that say the same."""
    result = []
    for finding in found:
        claim = finding.claim
        if claim.status == SUPPORTED:
            cited = {entry.url for each in claim.entries if (entry := ledger.find(each))}
            more = [
                ledger.add(page, sentence.start, sentence.end).id
                for page in pages.values()
                if page.url not in cited and len(words(claim.text) - words(page.text)) == 0
                for sentence in sentences(page.text)
                if claims.check(claim.text, sentence.text) is None
            ]
            if more:
                claim = claims.judge(claim.text, [*claim.entries, *more], ledger, pages)
        result.append(replace(finding, claim=claim))
    return tuple(result)


def analysis(found: Sequence[Finding]) -> Analysis:
    """Return the analysis of findings. Its overview and summary consist of supported claims."""
    good = {
        kind: [each.claim for each in found if each.kind == kind and each.claim.status == SUPPORTED]
        for kind in KINDS
    }
    swot = {kind: good[kind] for kind in SWOT}
    overview = _overview(good)
    return Analysis(
        overview=overview,
        features=tuple(good["features"]),
        competitors=tuple(good["competitors"]),
        swot=swot,
        summary=_summary(overview, good),
    )


def report(
    base: Report,
    found: Sequence[Finding],
    disagreements: Sequence[Disagreement],
    ledger: Iterable[LedgerEntry],
) -> Report:
    """Return the report of findings: supported ones by kind, with entries numbered anew.

    Args:
        base: the report without statements.
        found: the findings, in the order of the report.
        disagreements: facts on which sources differ.
        ledger: all entries; those that are not used are left out.
    """
    supported = [each for each in found if each.claim.status == SUPPORTED]
    titles = list(TITLES)
    ordered = sorted(supported, key=lambda each: titles.index(each.kind))
    used = [entry for each in ordered for entry in each.claim.entries]
    used += [variant[2] for each in disagreements for variant in each.variants]
    kept, ids = renumbered(ledger, used)
    sections = tuple(
        Section(
            TITLES[kind],
            tuple(
                replace(each.claim, entries=tuple(ids[old] for old in each.claim.entries))
                for each in ordered
                if each.kind == kind
            ),
        )
        for kind in titles
        if any(each.kind == kind for each in ordered)
    )
    return replace(
        base,
        sections=sections,
        disagreements=tuple(
            replace(
                each,
                variants=tuple((value, date, ids[old]) for value, date, old in each.variants),
            )
            for each in disagreements
        ),
        # Their markers may resolve to nothing: the reason says which.
        unsupported=tuple(
            replace(each.claim, entries=()) for each in found if each.claim.status != SUPPORTED
        ),
        ledger=kept,
        found_nothing=not sections and not disagreements,
    )


def problems(report: Report, pages: Mapping[str, CrawledPage]) -> list[str]:
    """Return what is wrong with a report: claims without proof, and markers without entries."""
    ledger = Ledger(report.ledger)
    found = []
    for section in report.sections:
        for claim in section.claims:
            judged = claims.judge(claim.text, claim.entries, ledger, pages)
            if judged.status != SUPPORTED:
                found.append(f"{section.title}: {judged.reason}")
            elif judged.entries != claim.entries or judged.origins != claim.origins:
                found.append(f"{section.title}: “{cut(claim.text, 60)}” counts wrong sources")
    found += [
        f"{each.subject}: the marker [{variant[2]}] resolves to nothing"
        for each in report.disagreements
        for variant in each.variants
        if ledger.find(variant[2]) is None
    ]
    return found


def _same(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Return groups of statements of different pages that support the first one's words."""
    groups: list[list[Statement]] = []
    for each in statements:
        for group in groups:
            if claims.check(group[0].text, each.text) is None or (
                # The shorter one of two statements is the claim.
                len(group) == 1 and claims.check(each.text, group[0].text) is None
            ):
                if claims.check(group[0].text, each.text) is not None:
                    group.insert(0, each)
                elif all(each.page.url != other.page.url for other in group):
                    group.append(each)
                break
        else:
            groups.append([each])
    return groups


def _overview(good: Mapping[str, Sequence[Claim]]) -> str:
    parts: list[str] = []
    for kind in ("facts", "features", "strengths", "weaknesses", "competitors"):
        for claim in good[kind][:1]:
            part = _marked(claim)
            if len(" ".join([*parts, part])) <= OVERVIEW:
                parts.append(part)
    return " ".join(parts)


def _marked(claim: Claim) -> str:
    return claim.text + "".join(f" [{each}]" for each in claim.entries[:3])


def _summary(overview: str, good: Mapping[str, Sequence[Claim]]) -> str:
    """Return the summary for the reporter, in Markdown."""
    lines = ["## Overview", "", overview or "Nothing was found.", ""]
    for title, kinds in (
        ("Features", ("features",)),
        ("Competitors", ("competitors",)),
        ("SWOT", SWOT),
    ):
        lines += [f"## {title}", ""]
        listed = [(kind, claim) for kind in kinds for claim in good[kind][:5]]
        lines += [
            f"- {f'{TITLES[kind]}: ' if title == 'SWOT' else ''}{_marked(claim)}"
            for kind, claim in listed
        ] or ["Nothing was found."]
        lines.append("")
    return "\n".join(lines)
