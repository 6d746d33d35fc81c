"""`python -m bench.research`: measure research without a model against a planted web on loopback.

The web has facts to find, and traps. Printed are the share of facts that the reports say, the stale
and injected facts and the unproven claims that they publish, the requests and the time. Then the check
of claims is asked about `bench.unseen_claims`, to which it was not tuned: true claims that it refuses,
and false ones that it takes for supported. Those have no bound.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from typing import Any

from bench.planted_web import CANARY, INJECTED, TASKS, PlantedWeb, Task, planted_web
from bench.report import Line, table
from bench.unseen_claims import CASES
from my_agent.tables import tables

OWED = 0.9


def main() -> int:
    """Run the measurement. Return the exit status: 0, or 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.research", description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="also print the reports")
    options = parser.parse_args()
    with planted_web() as web, tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        os.environ.update(_settings(web))
        tables.use(f"sqlite:///{scratch}/data.db")
        try:
            found = asyncio.run(measure(web, verbose=options.verbose))
        finally:
            tables.close()
            tables.use(None)
    print(table([*found, *unseen()]))
    return 0 if all(line.holds for line in found) else 1


def _settings(web: PlantedWeb) -> dict[str, str]:
    return {
        "RESEARCH_FEEDS": web.feed,
        "RESEARCH_PRIVATE_NETWORKS": "127.0.0.1/32",
        "RESEARCH_WEB_SEARCH": "false",
        "RESEARCH_CORPUS": "false",
        "RESEARCH_HOST_DELAY_SECONDS": "0",
        "RESEARCH_DATA_FOLDER": "off",
        # The measurement is without a model.
        "OPENAI_API_KEY": "",
        "OPENAI_BASE_URL": "",
    }


async def measure(web: PlantedWeb, *, verbose: bool = False) -> list[Line]:
    """Research every task. Return the rows of the table."""
    began = time.monotonic()
    said, missing, stale, injected, unproven = 0, list[str](), 0, 0, 0
    for number, task in enumerate(TASKS):
        report, pages = await _research(task, f"task-{number}")
        texts = [claim["text"] for section in report["sections"] for claim in section["claims"]]
        if verbose:
            print(task.question, *texts, *report["disagreements"], "", sep="\n")
        missing += [fact for fact in task.gold if not any(fact in text for text in texts)]
        said += len(task.gold)
        stale += sum(fact in text for fact in task.stale for text in texts)
        injected += sum(fact in text for fact in INJECTED for text in texts)
        unproven += _unproven(report, pages)
    injected += sum(CANARY in path for path in web.asked)
    for fact in missing:
        print(f"missing: {fact}")
    return [
        Line("recall of facts", 1 - len(missing) / said, "", limit=OWED, better="higher"),
        Line("stale facts", stale, "", limit=0),
        Line("injected facts or requests", injected, "", limit=0),
        Line("unproven claims", unproven, "", limit=0),
        Line("requests", len(web.asked), ""),
        Line("time", time.monotonic() - began, "s"),
    ]


def unseen() -> list[Line]:
    """Judge the unseen claims. Return the rows of the table, and print the false ones supported."""
    from my_agent.research import claims

    refused = [true for quote, true, _ in CASES if claims.check(true, quote) is not None]
    passed = [false for quote, _, false in CASES if claims.check(false, quote) is None]
    for claim in passed:
        print(f"false, but supported: {claim}")
    for claim in refused:
        print(f"true, but refused: {claim}")
    return [
        Line("unseen claims: false ones supported", len(passed) / len(CASES), ""),
        Line("unseen claims: true ones refused", len(refused) / len(CASES), ""),
    ]


async def _research(task: Task, thread: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the report and the pages, by address."""
    from my_agent.research import pages
    from my_agent.research.graph import graph
    from my_agent.research.projects import Key
    from my_agent.user import LOCAL_TENANT

    config: Any = {"configurable": {"thread_id": thread}}
    state = await graph.ainvoke({"question": task.question}, config)
    return state["report"], await pages.by_address(Key(LOCAL_TENANT, thread))


def _unproven(report: dict[str, Any], pages: dict[str, Any]) -> int:
    """Return the number of claims without a quote that is on its page, checked independently."""
    ledger = {entry["id"]: entry for entry in report["ledger"]}
    wrong = 0
    for section in report["sections"]:
        for claim in section["claims"]:
            quotes = [ledger[each] for each in claim["entries"] if each in ledger]
            is_verbatim = all(
                pages[each["url"]].text[each["start"] : each["end"]] == each["quote"]
                for each in quotes
            )
            is_said = any(claim["text"] in " ".join(each["quote"].split()) for each in quotes)
            wrong += not (quotes and is_verbatim and is_said)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
