"""Reports: what is told about profiles, candidates, searches and enrichments. Pure functions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from my_agent.icp_finder import values
from my_agent.icp_finder.model import Candidate, Changes, Failure, Icp, Job, Scored, Site
from my_agent.web.websites import readable

if TYPE_CHECKING:
    from my_agent.icp_finder.search.searching import Outcome
    from my_agent.icp_finder.search.website import Reread

# A job with one of these states continues when it is requested again.
ENDED = ("failed", "cancelled")
# Names in one sentence; the others are counted.
NAMED = 5


def listed(words: Sequence[str]) -> str:
    """Join words as in a sentence; no words give an empty text."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def some(names: Sequence[str]) -> list[str]:
    """Return the first names, and how many more there are."""
    return [*names[:NAMED], *([f"{len(names) - NAMED} more"] if len(names) > NAMED else [])]


def few(names: Sequence[str]) -> str:
    """Join the first names as in a sentence, with how many more there are."""
    return listed(some(names))


def counted(number: int) -> str:
    """Return a number of companies in words."""
    return "1 company" if number == 1 else f"{number} companies"


def domains(of: Sequence[Site]) -> str:
    """List websites in one line."""
    return ", ".join(readable(site["domain"]) for site in of)


def named(site: Site) -> str:
    """Return a company's name and domain."""
    short = readable(site["domain"])
    return short if site["name"] in ("", site["domain"]) else f"{site['name']} ({short})"


def proposal(icp: Icp) -> str:
    """Format an ICP as a list."""
    return "\n".join(f"- {name}: {', '.join(told) or 'any'}" for name, told in _shown(icp).items())


def _shown(icp: Icp | None) -> dict[str, list[str]]:
    """Return the values of a profile by the names that users see. Exclusions are left out if empty."""
    fields = {field: values.of(icp, field) for field in values.FIELDS}
    never = fields.pop("exclusions")
    return {**fields, "never": never} if never else fields


def about_profile(site: Site, customers: Sequence[Site], icp: Icp | None) -> str:
    """Tell what is stored about the company."""
    known = f"Your company: {named(site)}.\nYour customers: {domains(customers) or 'none yet'}."
    return f"{known}\n{proposal(icp)}" if icp else known


def profile_now(said: str, icp: Icp | None) -> str:
    """Say what has happened to a profile, and show it."""
    return f"{said} The profile is now:\n\n{proposal(icp)}" if icp else said


def differences(
    before: tuple[str, Sequence[str], Icp | None], after: tuple[str, Sequence[str], Icp]
) -> str:
    """Format what differs between two companies, a line for each part; empty if nothing does.

    Args:
        before: domain of the company, domains of its customers, and its profile.
        after: the same, changed.
    """
    (site, customers, icp), (site_then, customers_then, icp_then) = before, after
    lines = [f"- website: {readable(site)} → {readable(site_then)}"] if site != site_then else []
    gone = listed([readable(each) for each in customers if each not in customers_then])
    added = listed([readable(each) for each in customers_then if each not in customers])
    if moved := ", ".join(filter(None, (gone and f"without {gone}", added and f"with {added}"))):
        lines.append(f"- customers: {moved}")
    old, new = _shown(icp), _shown(icp_then)
    for name in {**new, **old}:
        was, is_ = old.get(name, []), new.get(name, [])
        if was != is_:
            none = "nothing" if name == "never" else "any"
            lines.append(f"- {name}: {', '.join(was) or none} → {', '.join(is_) or none}")
    return "\n".join(lines)


def reread(again: "Reread") -> str:
    """Say which websites of a profile were read again."""
    if not again.read:
        return "I could read none of your websites again, so the profile is as old as before."
    done = "website" if len(again.read) == 1 else "websites"
    unread = listed([readable(each) for each in again.unread])
    more = f" I could not read {unread}." if unread else ""
    return f"I have read {len(again.read)} {done} of your profile again.{more}"


def report(best: Sequence[Scored], count: int) -> str:
    """List the best candidates with the main reasons for each."""
    top = f"; the best {len(best)}" if len(best) < count else ""
    lines = [f"{at}. {line(each)}" for at, each in enumerate(best, 1)]
    return "\n".join([f"I have found {counted(count)} like your customers{top}:", "", *lines])


def line(scored: Scored) -> str:
    """Describe a candidate in one line, with the main reasons for its score."""
    candidate, score = scored.candidate, scored.score
    about = ", ".join(filter(None, (candidate.industry, candidate.region)))
    # Rows of the version before have no evidence.
    proven = {each["part"] for each in score.evidence} or score.parts.keys()
    strongest = sorted(proven & score.parts.keys(), key=lambda part: (-score.parts[part], part))[:2]
    why = listed([part.replace("_", " ") for part in strongest if score.parts[part] > 0])
    details = "; ".join(filter(None, (about, why and f"for its {why}")))
    return f"{candidate.name}: {score.total:.0%}" + (f" ({details})" if details else "")


def page(text: str, start: int, count: int, words: str) -> str:
    """Show a page of the list of candidates."""
    about = f" for “{words}”" if words else ""
    until = min(start + 10, count)
    lead = f"Candidates {start + 1} to {until} of {count}{about}:"
    more = "\n\nWrite “more” for the next ones." if until < count else ""
    return f"{lead}\n\n{text}{more}"


def noted(verdict: str, names: Sequence[str], reason: str) -> str:
    """Report stored feedback."""
    why, which = f" (because: {reason})" if reason else "", listed(names).rstrip(".")
    return {
        "rejected": f"I no longer show {which}{why}. “Restore” with the name brings it back.",
        "kept": f"I keep {which}{why} and show it first.",
        "liked": f"I rank companies like {which} higher from now on.",
        "restored": f"I have forgotten what you said about {which}.",
    }[verdict]


def rejections(lines: Sequence[tuple[str, str]]) -> str:
    """List the rejected companies."""
    shown = [f"- {name}" + (f": {reason}" if reason else "") for name, reason in lines]
    return "You have rejected:\n" + "\n".join(shown) if shown else "You have rejected none."


def searched(outcome: "Outcome") -> list[str]:
    """Say what a search gave, what has changed, and which source gave no answer."""
    sources, codes, version = outcome.sources, ", ".join(outcome.codes), outcome.version
    web = {
        "failed": "The web could not be asked: no search engine has answered.",
        "nothing": "The web has named no company that fits.",
    }
    register = {
        "found": f"The register added {counted(outcome.added)} of SSIC {codes}.",
        "nothing": f"The register has no active company of SSIC {codes}.",
        "empty": "The register of companies is empty: nobody has ingested one.",
        "no_codes": "The industries match no SSIC code, so the register could not be asked.",
        "elsewhere": "The register has companies in Singapore only, and you want other regions.",
    }
    told = [web.get(sources["web"], ""), register.get(sources["register"], "")]
    again = " Write “search again” to try again." if sources["web"] == "failed" else ""
    if version is None and outcome.kept:
        kept = "candidate stays as it is" if outcome.kept == 1 else "candidates stay as they are"
        told.append(f"There is no new result, and your {outcome.kept} {kept}.{again}")
    elif version is None:
        advice = again or " Try other industries, as in “industries: freight transport”."
        told.append(f"So I have no candidates for this profile.{advice}")
    is_second = version is not None and version.number > 1
    since = (
        f"Since the last search, {difference(version.changes)}." if version and is_second else ""
    )
    return [each for each in (" ".join(filter(None, told)), since) if each]


def difference(changes: Changes) -> str:
    """Describe the difference between two versions of a discovery, as the end of a sentence."""
    told = []
    for name, lines in (("new", changes["new"]), ("gone", changes["gone"])):
        if lines:
            names, verb = few([each["name"] for each in lines]), "is" if len(lines) == 1 else "are"
            told.append(f"{counted(len(lines))} {verb} {name}: {names}")
    if changed := changes["changed"]:
        verb = "has" if len(changed) == 1 else "have"
        moves = [f"{each['name']} {each['before']:.0%} → {each['total']:.0%}" for each in changed]
        told.append(f"{counted(len(changed))} {verb} another score: {few(moves)}")
    return "; ".join(told) or "nothing has changed"


def enriched(done: Sequence[Candidate]) -> str:
    """Report what was found about each company, and why nothing was found about the others."""
    read = [each for each in done if each.details.get("status") == "read"]
    others = [each for each in done if each.details.get("status") != "read"]
    notes = [str(each.details.get("note", "")) for each in others]
    failed = unenriched([Failure(e.key, e.name, why) for e, why in zip(others, notes, strict=True)])
    if not read:
        return f"I could enrich none of {counted(len(done))}. {failed}".strip()
    number = f"{len(read)} of {counted(len(done))}" if failed else counted(len(read))
    lines = [f"- {each.name}: {_found(each)}" for each in read]
    return "\n".join(filter(None, [f"I have enriched {number}:", *lines, failed]))


def _found(candidate: Candidate) -> str:
    details = candidate.details
    told = [", ".join([*details.get("emails", ()), *details.get("phones", ())])]
    told.append(f"{details['size']} people" if details.get("size") else "")
    found = "; ".join(filter(None, told))
    return found or "its site was read, but names no contact and no size"


def unenriched(failures: Sequence[Failure], *, is_over: bool = True) -> str:
    """Report the companies that could not be enriched, grouped by the reason.

    Args:
        failures: the companies.
        is_over: whether they can be tried again now.
    """
    reasons: dict[str, list[str]] = {}
    for each in failures:
        reasons.setdefault(each.why.rstrip("."), []).append(each.name)
    told = [f"{few(names)} ({why[:1].lower()}{why[1:]})" for why, names in reasons.items()]
    again = " Write “enrich” to try again." if is_over else ""
    return f"Not enriched: {'; '.join(told)}.{again}" if told else ""


def queued(job: Job) -> str:
    """Report that a background job enriches the rest."""
    if job.created:
        left = job.total - job.done
        are = "more is" if left == 1 else "more are"
        return f"{left} {are} being enriched in the background."
    return f"There is a job for this profile already, so I started no other. {progress(job)}"


def progress(job: Job) -> str:
    """Report the progress of a job."""
    state = {
        "queued": "waits",
        "running": "is running",
        "done": "is done",
        "cancelled": "was cancelled",
        "failed": "has failed",
    }[job.status]
    again = " Write “enrich” to go on with it." if job.status in ENDED else ""
    is_over = job.status not in ("queued", "running")
    failed = f" {unenriched(job.failures, is_over=is_over)}" if job.failures else ""
    read = job.done - len(job.failures)
    done = f"{read} of {job.total} companies" + (" enriched" if job.failures else "")
    return f"The enrichment in the background {state}: {done}.{failed or again}"
