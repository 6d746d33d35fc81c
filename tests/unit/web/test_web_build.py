"""The routes of the web app, and its build without Node."""

import gzip
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from threadhold.http import web_app
from tools import web

HTML = {"accept": "text/html,application/xhtml+xml"}


def make_client(build: Path, prefix: str = "") -> TestClient:
    async def api(request: object) -> PlainTextResponse:
        return PlainTextResponse("the API")

    routes = [*web_app.routes(prefix, build), Route("/", api, methods=["GET", "POST"])]
    return TestClient(Starlette(routes=routes))


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "build" / "assets").mkdir(parents=True)
    (tmp_path / "build" / "index.html").write_text('<meta content="__API__" />')
    (tmp_path / "build" / "assets" / "a.js").write_text("1")
    (tmp_path / "secret").write_text("no")
    return tmp_path / "build"


def test_browsers_get_the_page_and_programs_the_api(built: Path) -> None:
    client = make_client(built, '/api"<')
    page = client.get("/", headers=HTML)
    assert page.text == '<meta content="/api&quot;&lt;" />'
    assert "script-src 'self';" in page.headers["content-security-policy"]
    assert client.get("/").text == "the API"
    assert client.post("/", headers=HTML).text == "the API"


def test_only_files_of_the_build_are_served(built: Path) -> None:
    client = make_client(built)
    asset = client.get("/assets/a.js")
    assert asset.text == "1"
    assert "immutable" in asset.headers["cache-control"]
    for name in ("..%2Findex.html", "%2e%2e%2f%2e%2e%2fsecret", "none.js", "."):
        assert client.get(f"/assets/{name}").status_code == 404


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br", "br"),
        ("GZIP", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("br ; q=0.000, gzip; q=0", None),
        ("identity", None),
        ("", None),
    ],
)
def test_a_file_is_sent_in_an_encoding_that_the_client_accepts(
    built: Path, accepted: str, encoding: str | None
) -> None:
    text = "one, and the same, " * 99
    (built / "assets" / "b.js").write_text(text)
    (built / "assets" / "b.js.gz").write_bytes(gzip.compress(text.encode()))
    (built / "assets" / "b.js.br").write_bytes(b"smaller")
    with make_client(built).stream(
        "GET", "/assets/b.js", headers={"accept-encoding": accepted}
    ) as answer:
        sent = b"".join(answer.iter_raw())
    assert answer.headers.get("content-encoding") == encoding
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["content-type"].startswith("text/javascript")
    expected = {"br": b"smaller", "gzip": (built / "assets" / "b.js.gz").read_bytes()}
    assert sent == expected.get(encoding or "", text.encode())


def test_without_a_build_the_page_says_what_is_missing(tmp_path: Path) -> None:
    page = make_client(tmp_path).get("/", headers=HTML)
    assert page.status_code == 200
    assert "Install Node 20" in page.text


def test_without_node_the_build_succeeds_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(web, "build", web.check_node)
    assert web.main([]) == 0
    assert "install Node 20" in capsys.readouterr().err
    assert web.main(["--strict"]) == 1


def test_a_changed_source_changes_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.ts").write_text("1")
    before = web.fingerprint(tmp_path)
    assert web.fingerprint(tmp_path) == before
    (tmp_path / "src" / "a.ts").write_text("2")
    assert web.fingerprint(tmp_path) != before
