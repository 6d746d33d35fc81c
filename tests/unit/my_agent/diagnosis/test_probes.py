"""Probes of a host: bounded, read-only, and never to a private address."""

import json
from ipaddress import ip_network
from pathlib import Path

import pytest

from my_agent.diagnosis import probes
from tests.support.certificates import certified
from tests.support.websites import Page, websites

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


async def probed(url: str, seconds: float = 30.0) -> list[tuple[str, str]]:
    """Return level and text of each line."""
    lines = (await probes.probe(url, LOOPBACK, seconds)).splitlines()
    return [(each["level"], each["msg"]) for each in map(json.loads, lines)]


async def test_answer_of_a_host_is_read_without_its_body() -> None:
    with websites() as sites:
        sites.pages = {"/health": Page(b"secret"), "/broken": Page(b"", 503)}
        (_, dns), (level, said) = await probed(f"{sites.url}/health")
        assert dns == "DNS: 127.0.0.1 has one address"
        assert level == "info"
        assert said.startswith("HTTP: GET /health answered 200 after")
        (_, _), (level, said) = await probed(f"{sites.url}/broken")
        assert level == "error"
        assert "answered 503" in said
        assert sites.asked == ["/health", "/broken"]


async def test_silent_host_ends_the_probe_in_time() -> None:
    with websites() as sites:
        sites.gate.clear()
        found = await probed(sites.url, 0.2)
        sites.gate.set()
    assert found[1] == ("error", "HTTP: no answer from 127.0.0.1 within 0.2 s")


async def test_end_of_a_certificate_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = certified(tmp_path, "localhost")
    monkeypatch.setattr(probes, "_tls", lambda: client)
    with websites(server) as sites:
        sites.pages = {"/": Page(b"x")}
        found = await probed(f"https://localhost:{sites.port}/")
    assert any(said.startswith("TLS: the certificate is valid until 2") for _, said in found)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:1/", "HTTP: 127.0.0.1 did not answer"),
        ("http://10.0.0.1/", "10.0.0.1 is at a private address, which is not probed"),
        ("http://no-such-host.invalid/", "DNS: no such host no-such-host.invalid"),
        ("ftp://127.0.0.1/", "is not an http or https address"),
        ("http://a:b/", "is not a URL"),
    ],
)
async def test_host_that_cannot_be_probed_is_told(url: str, told: str) -> None:
    assert told in (await probed(url))[-1][1]
