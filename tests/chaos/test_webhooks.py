"""Webhooks arrive, with one id, although server and receiver fail."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from standardwebhooks.webhooks import Webhook

from tests.chaos.conftest import WEBHOOK_SECRET
from tests.chaos.victim import Victim
from tests.support import databases
from tests.support.http_server import QuietHandler, answering
from threadhold.cli import main

pytestmark = pytest.mark.usefixtures("each_database")


class Receiver:
    """A receiver whose answers a test chooses.

    Attributes:
        url: Its address.
        answers: The statuses of the next answers; then 200.
        calls: Path, headers and body of each call.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[int] = []
        self.calls: list[tuple[str, dict[str, str], bytes]] = []


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.calls.append((self.path, headers, body))
            self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
            self.end_headers()

    with answering(Handler) as url:
        receiver = Receiver(url)
        yield receiver


def command(victim: Victim, *arguments: str) -> str:
    result = CliRunner().invoke(
        main, ["webhooks", *arguments, "--database-url", databases.url(victim.database)]
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_webhook_arrives_after_a_kill_between_end_and_delivery(victim: Victim) -> None:
    victim.start()
    with receiving() as receiver:
        receiver.answers = [503] * 100
        thread = victim.thread()
        run = victim.run(thread, "echo", {"value": 1}, webhook=f"{receiver.url}/hook")
        victim.await_(lambda: receiver.calls)
        victim.await_(lambda: "HTTP 503" in str(victim.sql("SELECT error FROM webhooks")))
        # What the receiver hears does not depend on what is left of the run.
        assert victim.client.delete(f"/threads/{thread}").is_success
        victim.kill()
        [(status, attempts)] = victim.sql("SELECT status, attempts FROM webhooks")
        assert status == "pending" and attempts >= 1
        tried = len(receiver.calls)
        receiver.answers.clear()
        victim.start()
        victim.await_(lambda: not victim.sql("SELECT * FROM webhooks"))
    assert len(receiver.calls) == tried + 1
    assert len({headers["webhook-id"] for _, headers, _ in receiver.calls}) == 1
    for _, headers, body in receiver.calls:
        verified = Webhook(WEBHOOK_SECRET).verify(body, headers)
        assert (verified["run_id"], verified["status"]) == (run, "success")


def test_gone_receiver_is_a_dead_letter_until_it_is_replayed(victim: Victim) -> None:
    victim.start()
    with receiving() as receiver:
        receiver.answers = [410]
        run = victim.run(victim.thread(), "echo", {"value": 1}, webhook=f"{receiver.url}/gone")
        victim.await_(lambda: victim.sql("SELECT * FROM webhooks WHERE status = 'dead'"))
        assert "HTTP 410" in command(victim, "list")
        assert run in command(victim, "list")
        assert run not in command(victim, "list", "--tenant", "another")
        assert any("not delivered" in each for each in victim.findings())
        assert "0 webhooks" in command(victim, "replay", "--all", "--tenant", "another")
        assert "1 webhooks" in command(victim, "replay", "--all")
        victim.await_(lambda: not victim.sql("SELECT * FROM webhooks"))
    first, second = receiver.calls
    assert first[1]["webhook-id"] == second[1]["webhook-id"]


def test_stateless_run_and_failed_run_deliver_their_result(victim: Victim) -> None:
    victim.start()
    with receiving() as receiver:
        for graph, input in (("echo", {"value": 5}), ("failing", {"value": 1})):
            body = {"assistant_id": graph, "input": input, "webhook": f"{receiver.url}/{graph}"}
            victim.client.post("/runs/wait", json=body)
        victim.await_(lambda: len(receiver.calls) == 2)
    found = {path: json.loads(body) for path, _, body in receiver.calls}
    assert found["/echo"]["status"] == "success"
    assert found["/echo"]["values"]["value"] == 5
    assert found["/failing"]["status"] == "error"
    assert found["/failing"]["error"]["message"]
