"""Replies: what the assistant says. Pure; it says only what the state holds."""

import json

from my_agent.diagnosis import report
from my_agent.diagnosis.fold import State

OFFLINE = "I am offline: no language model is configured, so rules read the data."
FIRST = (
    "What do you see, and where? Paste logs, metrics as CSV, or traces, as many as you like. Put "
    "`==> name.log <==` above each file, so that I know its service. Lines from before the "
    "incident help to tell what is new."
)
AGAIN = (
    "I only look and change nothing, and I need something to read. For example, paste this with your "
    "own lines:\n\n"
    "==> payments.log <==\n"
    "2026-03-02 09:00:01 INFO [payments] request handled in 12 ms\n"
    "2026-03-02 09:40:00 ERROR [payments] write failed: No space left on device"
)
HELP = (
    "I look for the cause of an incident, and change nothing. Paste logs (JSON, logfmt, syslog, access logs, klog or plain "
    "lines), metrics as CSV, or traces. With “check https://...” I look at a host from outside. I name "
    "a cause only if tests of the evidence support it. “status” shows where I am, and “report” the "
    "whole record."
)
THANKS = "You are welcome. The session stays open: paste more at any time."
REMARK = (
    "I keep your remark in the record. It does not change my confidence: only what I find in logs, "
    "metrics, traces and probes does. I repair and delete nothing; to start over, begin a new thread."
)


def question(missing: list[str], state: State) -> str:
    """Return the question for what is missing."""
    wanted = "; ".join(missing)
    leading = state["hypotheses"].get(state["leading"])
    guess = (
        f"So far my best guess is that {leading['statement']}, with a confidence of "
        f"{leading['confidence']:.2f}. That is too little to name a cause. "
        if leading is not None
        else "I find no sign of a cause yet. "
    )
    return f"{guess}Can you give me {wanted}? If not, say “no”, and I end with what there is."


def probed(url: str, result: str) -> str:
    """Return what a probe found."""
    found = "; ".join(str(json.loads(each)["msg"]) for each in result.splitlines())
    return f"Probe of {url}: {found}."


def ended(session: str, state: State, *, offline: bool) -> str:
    """Return the reply at the end of an investigation."""
    parts = [report.conclusion(state)]
    found = state["conclusion"] or {}
    if found.get("outcome") == "cause":
        cause = state["hypotheses"][found["hypothesis"]]
        parts.append("\n".join(report.quotes(cause, "for", state["sources"])))
    refuted = [
        f"- {report.plain(each['statement'])}: {_why(each)}"
        for each in state["hypotheses"].values()
        if each["status"] == "refuted"
    ]
    if refuted:
        parts.append("\n".join(["Ruled out:", *refuted]))
    parts.append(f"The whole record: `GET /diagnosis/{session}/report`.")
    return "\n\n".join([*parts, OFFLINE] if offline else parts)


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
