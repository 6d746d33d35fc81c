"""Reading websites: extracted text, and addresses that are refused."""

import asyncio
import gzip
import socket
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest

from my_agent.icp_finder.search.website import read_page, read_site
from my_agent.threads import context_key
from my_agent.web import fetch, pages, sites
from my_agent.web.contacts import contacts
from my_agent.web.fetch import SiteRefused, SiteUnreadable
from tests.support.certificates import certified
from tests.support.websites import HTML, Page, Websites, company_page, redirect, websites
from threadhold.addresses import is_public

TEXT = "We sell handmade widgets to hotels. " * 10


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Websites]:
    """Start websites at 127.0.0.1, the only private address that may be read."""
    monkeypatch.setenv("ICP_PRIVATE_NETWORKS", "127.0.0.1/32")
    monkeypatch.setenv("ICP_SITE_SECONDS", "60")
    with websites() as served:
        served.pages["/"] = company_page("Acme Widgets", TEXT)
        yield served


def resolving(patch: pytest.MonkeyPatch, **names: list[str]) -> list[str]:
    """Fake the DNS: map host names to addresses. The returned list contains the lookups."""
    asked: list[str] = []

    async def look_up(_: Any, host: str, port: int, **__: Any) -> list[Any]:
        asked.append(host)
        found = names.get(host.replace(".", "_"), [host])
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in found]

    patch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", look_up)
    return asked


async def test_site_is_read(web: Websites) -> None:
    site = await read_site(f"{web.url}/")
    assert site["name"] == "Acme Widgets"
    assert site["about"].startswith(("Acme Widgets We sell handmade", "We sell handmade"))
    assert site["domain"] == sites.domain(web.url)
    assert len(site["about"]) <= pages.ABOUT_LENGTH


async def test_footers_and_links_are_read(web: Websites) -> None:
    body = (
        f"<html><body><nav><a href='/contact-us'>Contact</a> <a href='/about#team'>About us</a>"
        f"<a href='https://other.example/contact'>Partner contact</a></nav><main><p>{TEXT}</p></main>"
        "<script>var a = 'no@script.example'</script>"
        "<footer>Call 6123 4567 or <a href='mailto:Sales%40acme.example?subject=Hi'>write to us</a>"
        " <a href='tel:81234567'>hotline</a></footer></body></html>"
    )
    web.pages["/"] = Page(body.encode())
    page = await read_page(f"{web.url}/")
    assert contacts(page.text) == {
        "emails": ["sales@acme.example"],
        "phones": ["6123 4567", "81234567"],
    }
    assert page.further == (f"{web.url}/contact-us", f"{web.url}/about")


async def test_redirects_are_followed(web: Websites) -> None:
    web.pages["/old"] = redirect("/older")
    web.pages["/older"] = redirect(f"{web.url}/")
    assert (await read_site(f"{web.url}/old"))["name"] == "Acme Widgets"


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.2/",
        "http://10.0.0.1/admin",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://0.0.0.0/",
        "//192.168.0.1/",
    ],
)
async def test_redirect_to_private_address_is_refused(web: Websites, target: str) -> None:
    web.pages["/leak"] = redirect(target)
    with pytest.raises(SiteRefused, match="private address"):
        await read_site(f"{web.url}/leak")
    assert web.asked == ["/leak"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.com/", "gopher://x.com/"])
async def test_redirect_to_other_scheme_is_refused(web: Websites, target: str) -> None:
    web.pages["/leak"] = redirect(target)
    with pytest.raises(SiteRefused, match="not an http or https address"):
        await read_site(f"{web.url}/leak")


async def test_redirect_from_https_to_http_is_refused(
    tmp_path: Path, web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = certified(tmp_path, "secure.example")
    monkeypatch.setattr(fetch, "_tls", lambda: client)
    resolving(monkeypatch, secure_example=["127.0.0.1"])
    with websites(server) as secure:
        secure.pages["/moved"] = redirect("/old")
        secure.pages["/old"] = redirect(f"{web.url}/")
        with pytest.raises(SiteRefused, match="without encryption"):
            await read_site(f"https://secure.example:{secure.port}/moved")
        assert secure.asked == ["/moved", "/old"]
    assert web.asked == []


@pytest.mark.parametrize("path", ["/", "/to-itself"])
async def test_name_that_moves_to_a_private_address_is_asked_once_a_connection(
    web: Websites, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """DNS rebinding: the name has its public address for the check, and then a private one."""
    web.pages["/to-itself"] = redirect("/")
    asked: list[str] = []
    system = socket.getaddrinfo

    def resolve(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host != "rebinding.example":
            return system(host, port, *args, **options)
        asked.append(host)
        # The pages are there too: 0.0.0.0 is this machine.
        return system("127.0.0.1" if len(asked) == 1 else "0.0.0.0", port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    url = f"http://rebinding.example:{web.port}{path}"
    if path == "/":
        assert (await fetch.get(url, [ip_network("127.0.0.1/32")])).body
        assert asked == ["rebinding.example"]
    else:
        with pytest.raises(SiteRefused, match="private address"):
            await fetch.get(url, [ip_network("127.0.0.1/32")])
    assert web.asked == [path]


async def test_private_addresses_are_refused_unless_allowed(
    web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ICP_PRIVATE_NETWORKS")
    for site in (web.url, f"http://localhost:{web.port}"):
        with pytest.raises(SiteRefused, match="private address"):
            await read_site(site)
    assert web.asked == []


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::1", "::", "fe80::1", "fc00::1", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1"),
        *("192.88.99.1", "192.0.0.9", "2001:0:808:808::1", "2001:20::1", "3fff::1", "3fff:fff::1"),
        *("64:ff9b:1::1", "64:ff9b:1:ffff::808:808", "fec0::1", "feff::1", "::8.8.8.8", "5f00::1"),
        *("100::1", "200::1", "1fff::1", "4000::1", "fdff::1", "::ffff:0:808:808"),
    ],
)
def test_non_public_addresses(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::808:808"])
def test_public_addresses(address: str) -> None:
    assert is_public(ip_address(address))


async def test_name_that_resolves_to_private_address_is_refused(
    web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, inside_example=["93.184.216.34", "10.0.0.5"])
    with pytest.raises(SiteRefused, match=r"inside\.example is at a private address"):
        await read_site("http://inside.example")


async def test_connection_uses_the_checked_address(
    web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second lookup could return a different address (DNS rebinding)."""
    asked = resolving(monkeypatch, rebinding_example=["127.0.0.1"])
    site = await read_site(f"http://rebinding.example:{web.port}/")
    assert site["name"] == "Acme Widgets"
    # The connection gets the address and looks nothing up; the site sees the host name.
    assert asked.count("rebinding.example") == 1
    assert web.hosts == [f"rebinding.example:{web.port}"]


async def test_certificate_is_checked_against_host_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ICP_PRIVATE_NETWORKS", "127.0.0.1/32")
    server, client = certified(tmp_path, "secure.example")
    monkeypatch.setattr(fetch, "_tls", lambda: client)
    resolving(monkeypatch, secure_example=["127.0.0.1"], other_example=["127.0.0.1"])
    with websites(server) as web:
        web.pages["/"] = company_page("Acme Widgets", TEXT)
        found = await read_site(f"https://secure.example:{web.port}/")
        assert found["name"] == "Acme Widgets"
        with pytest.raises(SiteUnreadable, match="could not be read"):
            await read_site(f"https://other.example:{web.port}/")
        assert web.hosts == [f"secure.example:{web.port}"]


async def test_next_address_is_tried_if_one_does_not_answer(
    web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICP_PRIVATE_NETWORKS", "127.0.0.0/8")
    resolving(monkeypatch, two_example=["127.0.0.9", "127.0.0.1"])
    assert (await read_site(f"http://two.example:{web.port}/"))["name"] == "Acme Widgets"


async def test_site_without_https_is_read_over_http(
    web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def get(_: httpx.AsyncClient, url: str, *args: object) -> fetch.FetchedPage:
        asked.append(url)
        if url.startswith("https:"):
            raise httpx.ConnectError("refused")
        return fetch.FetchedPage(url, "text/html", company_page("Acme", TEXT).body, 1)  # type: ignore[arg-type]

    monkeypatch.setattr(fetch, "_get", get)
    assert (await read_site("https://plain.example/x"))["name"] == "Acme"
    assert asked == ["https://plain.example/x", "http://plain.example/x"]


async def test_name_without_www_is_tried_if_the_one_with_it_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def get(_: httpx.AsyncClient, url: str, *args: object) -> fetch.FetchedPage:
        asked.append(url)
        if "known" not in url.removeprefix("https://www.known"):
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return fetch.FetchedPage(url, "text/html", company_page("Acme", TEXT).body, 1)  # type: ignore[arg-type]

    monkeypatch.setattr(fetch, "_get", get)
    assert (await read_site("https://www.known.example"))["name"] == "Acme"
    assert asked == ["https://www.known.example", "https://known.example"]
    with pytest.raises(SiteUnreadable, match=r"^no\.example is not known on the internet"):
        await read_site("https://www.no.example")


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (Page(b"gone", 404), r"answered with an error \(404\)"),
        (Page(b"%PDF", headers={"content-type": "application/pdf"}), "is not a page with text"),
        (Page(TEXT.encode(), headers={}), "is not a page with text"),
        (Page(b""), "has no text"),
        (Page(b"<html><body><script>x()</script></body></html>"), "has no text"),
        (Page(b"x", headers={**HTML, "content-encoding": "br"}), "compressed in an unknown way"),
        (Page(b"no gzip", headers={**HTML, "content-encoding": "gzip"}), "could not be read"),
        (redirect("/page"), "redirects again and again"),
    ],
)
async def test_unreadable_site_raises_readable_error(
    web: Websites, page: Page, sentence: str
) -> None:
    web.pages["/page"] = page
    with pytest.raises(SiteUnreadable, match=rf"^127\.0\.0\.1 .*{sentence}.*\.$"):
        await read_site(f"{web.url}/page")


async def test_unreachable_site_is_unreadable(web: Websites) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(SiteUnreadable, match="could not be read"):
            await read_site(f"http://127.0.0.1:{closed.getsockname()[1]}")


async def test_slow_site_is_unreadable(web: Websites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICP_SITE_SECONDS", "0.2")
    web.gate.clear()
    with pytest.raises(SiteUnreadable, match=r"took more than 0\.2 seconds"):
        await read_site(web.url)


async def test_large_page_is_truncated(web: Websites) -> None:
    head = company_page("Acme", TEXT).body
    assert isinstance(head, bytes)
    web.pages["/large"] = Page(head + b"<p>more</p>" * (fetch.MAX_BYTES // 5))
    page = await read_page(f"{web.url}/large")
    assert page.name == "Acme"
    assert len(page.text) <= fetch.MAX_BYTES


async def test_decompressed_page_is_truncated(
    web: Websites,
) -> None:
    head = company_page("Acme", TEXT).body
    assert isinstance(head, bytes)
    packed = gzip.compress(head + b" " * (50 * fetch.MAX_BYTES))
    web.pages["/bomb"] = Page(packed, headers={**HTML, "content-encoding": "gzip"})
    assert len(packed) < fetch.MAX_BYTES
    page = await read_page(f"{web.url}/bomb")
    assert page.name == "Acme"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Acme", "Acme"),
        ("Home | Acme", "Acme"),
        ("Acme \u2013 Handmade widgets", "Acme"),
        ("Welcome", "127.0.0.1"),
        ("", "127.0.0.1"),
    ],
)
async def test_name_is_taken_from_the_title(web: Websites, title: str, name: str) -> None:
    html = f"<html><head><title>{title}</title></head><body><p>{TEXT}</p></body></html>"
    web.pages["/named"] = Page(html.encode())
    found = (await read_page(f"{web.url}/named")).name
    assert found.removesuffix(f":{web.port}") == name


@pytest.mark.parametrize(
    "written",
    [
        *("acme.co.uk", "ACME.co.uk", "www.acme.co.uk", "shop.eu.acme.co.uk", "b\u00fccher.de"),
        *("https://www.acme.co.uk/path?q=1#top", "http://acme.co.uk:8443/", "one.myshopify.com"),
        *("two.myshopify.com", "192.168.0.1", "localhost", "www.xn--bcher-kva.de"),
    ],
)
def test_thread_policy_and_graph_agree_on_domains(written: str) -> None:
    """The policy reads a typed website; the graph finds websites in a text."""
    assert sites.domain(written) == context_key.domain(written)
