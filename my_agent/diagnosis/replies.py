"""Replies: what the assistant says. Pure; it says only what the state holds."""

import json
from collections.abc import Sequence

from my_agent.diagnosis import report
from my_agent.diagnosis.record.fold import State

OFFLINE = (
    "No language model is configured, so I list what stands out, and name a cause only where two "
    "independent lines show it."
)
NO_MORE = "That is all I have"
FIRST = (
    "What do you see, and where? Paste what you have, as many times as you like: logs of any kind, the "
    "output of kubectl, docker, df or top, stack traces, metrics, traces. Long files can be uploaded. Put "
    "`==> name.log <==` above each file, so that I can name it. Lines from before the incident help to "
    "tell what is new."
)
AGAIN = (
    "I only look and change nothing, and I need something to read. For example, paste this with your "
    "own lines:\n\n"
    "==> payments.log <==\n"
    "2026-03-02 09:00:01 INFO [payments] request handled in 12 ms\n"
    "2026-03-02 09:40:00 ERROR [payments] write failed: No space left on device"
)
HELP = (
    "I look for the cause of an incident, and change nothing. Paste or upload anything: logs, output of "
    "kubectl, docker, df or top, stack traces, metrics, traces. With “check https://...” I look at a host "
    "from outside. I name a cause only if two independent lines of the evidence show it. “status” shows "
    "where I am, and “report” the whole record."
)
THANKS = "You are welcome. The session stays open: paste more at any time."
REMARK = (
    "I keep your remark in the record. It does not change my confidence: only what I find in logs, "
    "metrics, traces and probes does. I repair and delete nothing; to start over, begin a new thread."
)


def question(missing: Sequence[str], state: State, shown: str) -> str:
    """Return the question for what is missing.

    Args:
        missing: what to ask for.
        state: the state.
        shown: what stands out in the evidence, as text; empty if nothing does.
    """
    leading = state["hypotheses"].get(state["leading"])
    guess = (
        f"My best guess so far: {report.plain(leading['statement'])} (confidence "
        f"{leading['confidence']:.2f}). That is too little to name a cause."
        if leading is not None
        else "No cause has enough evidence yet."
    )
    wanted = "\n".join(f"- {report.plain(each)}" for each in missing)
    asked = f"Can you give me one of these?\n{wanted}\n\nIf not, say “no”, and I end with what there is."
    return "\n\n".join(filter(None, [guess, shown, asked]))


def probed(url: str, result: str) -> str:
    """Return what a probe found."""
    found = "; ".join(str(json.loads(each)["msg"]) for each in result.splitlines())
    return f"Probe of {url}: {found}."


def ended(session: str, state: State, shown: str, runbooks: str, *, why: str) -> str:
    """Return the reply at the end of an investigation.

    Args:
        session: its id.
        state: its state.
        shown: what stands out in the evidence, as text.
        runbooks: what runbooks say about it, as text.
        why: why no model has looked, or an empty text.
    """
    parts = [report.conclusion(state)]
    found = state["conclusion"] or {}
    if found.get("outcome") == "cause":
        cause = state["hypotheses"][found["hypothesis"]]
        parts.append("\n".join(report.quotes(cause, "for", state["sources"])))
    else:
        parts.append(shown)
    refuted = [
        f"- {report.plain(each['statement'])}: {_why(each)}"
        for each in state["hypotheses"].values()
        if each["status"] == "refuted"
    ]
    if refuted:
        parts.append("\n".join(["Ruled out:", *refuted]))
    parts += [runbooks, f"The whole record: `GET /diagnosis/{session}/report`.", why]
    return "\n\n".join(filter(None, parts))


def status(state: State) -> str:
    """Return where the investigation is."""
    lines = [
        f"- {report.plain(each['statement'])}: {each['status']}, confidence "
        f"{each['confidence']:.2f}. {_why(each)}".rstrip()
        for each in state["hypotheses"].values()
    ]
    number = len(state["sources"])
    read = f"I have read {number} source{'' if number == 1 else 's'}."
    known = "\n".join([read, *lines]) if lines else f"{read} I have no hypothesis yet."
    ending = [] if state["conclusion"] is None else [report.conclusion(state)]
    return "\n\n".join([known, *ending])


def _why(hypothesis: State) -> str:
    """Return the reason of the test that says most."""
    tests = hypothesis["tests"].values()
    failed = next((each["reason"] for each in tests if each["outcome"] == "failed"), None)
    passed = next((each["reason"] for each in tests if each["outcome"] == "passed"), "")
    chosen = failed if hypothesis["status"] != "supported" and failed else passed
    return f"{report.plain(chosen)}." if chosen else ""
