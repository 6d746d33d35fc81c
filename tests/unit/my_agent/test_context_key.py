"""Context keys: websites in every form that users type, payloads in every form that programs write."""

import json
import socket
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from my_agent.threads.context_key import context_key, domain
from my_agent.threads.payloads import canonical, payload_hash

TYPED = [
    "acme.co.uk",
    "ACME.CO.UK",
    "  acme.co.uk  ",
    "acme.co.uk.",
    "www.acme.co.uk",
    "WWW.Acme.co.uk/",
    "shop.eu.acme.co.uk",
    "http://acme.co.uk",
    "HTTPS://www.acme.co.uk/path/x?q=1#top",
    "https:/acme.co.uk",
    "https:acme.co.uk",
    "//acme.co.uk/",
    "acme.co.uk:8443",
    "https://acme.co.uk:443/",
    "ftp://user:pass@acme.co.uk/",
    "info@acme.co.uk",
    "mailto:info@acme.co.uk",
    "<https://acme.co.uk>",
    "acme.co.uk?utm=1",
    "acme.co.uk#about",
    "acme.co.uk\\about",
    "ａｃｍｅ.co.uk",
    "acme。co。uk",
]


@pytest.mark.parametrize("website", TYPED)
def test_website_spellings_give_one_domain(website: str) -> None:
    assert context_key(website, "Default ICP", None) == "domain:acme.co.uk"


@pytest.mark.parametrize(
    ("website", "expected"),
    [
        ("bücher.de", "xn--bcher-kva.de"),
        ("BÜCHER.de", "xn--bcher-kva.de"),
        ("https://www.xn--bcher-kva.de/", "xn--bcher-kva.de"),
        ("日本語.jp", "xn--wgv71a119e.jp"),
        # Two shops on one shop platform are two companies.
        ("one.myshopify.com", "one.myshopify.com"),
        ("two.myshopify.com", "two.myshopify.com"),
        ("a.b.kawasaki.jp", "a.b.kawasaki.jp"),
        # A host without a registrable domain is returned as it is.
        ("co.uk", "co.uk"),
        ("http://localhost:3000/x", "localhost"),
        ("www.intranet", "intranet"),
        ("192.168.0.1:80", "192.168.0.1"),
        ("http://[2001:DB8::1]:80/", "[2001:db8::1]"),
        # The part before @ is user information, even if it looks like a host.
        ("https://acme.com@evil.example/", "evil.example"),
    ],
)
def test_domain_of_a_website(website: str, expected: str) -> None:
    assert domain(website) == expected


@pytest.mark.parametrize(
    "website",
    [
        "not a website",
        "http://",
        "..",
        "acme..com",
        "-acme.com",
        "acme.com-",
        "[::1",
        "[nonsense]",
        "a" * 64 + ".com",
        ("a" * 60 + ".") * 5 + "com",
        "acme.com/" + "x" * 3000,
        "javascript:alert(1)",
        "\x00.com",
        "\ud800.com",
    ],
)
def test_invalid_website_is_rejected(website: str) -> None:
    with pytest.raises(ValueError, match="is not a website"):
        domain(website)


def test_domain_is_found_without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert domain("never-seen-before.example.museum") == "example.museum"


def test_rule_and_payload_are_the_context_without_website() -> None:
    key = context_key(None, "  Default   ICP ", {"size": 5})
    assert key == f"icp:Default ICP#{payload_hash({'size': 5})}"
    assert context_key("  ", "Default ICP", {"size": 5.0}) == key
    assert context_key(None, "Other", {"size": 5}) != key
    assert context_key(None, "Default ICP", None) == context_key(None, "Default ICP", {})


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "a\0b", "a\u202eb"])
def test_invalid_rule_name_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 100"):
        context_key(None, name, None)


@pytest.mark.parametrize("payload", [{"x": float("nan")}, {"x": float("inf")}, {"x": object()}])
def test_payload_that_is_not_json_is_rejected(payload: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        context_key(None, "Default ICP", payload)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def rewritten(value: Any) -> Any:
    """Return the same JSON value, with keys in another order and whole numbers in another form."""
    if isinstance(value, dict):
        return {key: rewritten(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [rewritten(each) for each in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and int(float(value)) == value:
        return float(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


@given(JSON)
def test_hash_does_not_depend_on_spelling(payload: Any) -> None:
    other = rewritten(payload)
    assert payload_hash(other) == payload_hash(payload)
    assert payload_hash(json.loads(canonical(payload))) == payload_hash(payload)


@given(JSON, JSON)
@example({"a": True}, {"a": 1})
@example({"a": "1"}, {"a": 1})
@example({"a": None}, {})
@example([1, 2], [2, 1])
@example([], {})
def test_hashes_are_equal_only_for_equal_canonical_forms(old: Any, new: Any) -> None:
    # At the top level, None equals an empty object. Inside a list it does not.
    assert (payload_hash([old]) == payload_hash([new])) == (canonical(old) == canonical(new))


@given(st.text(max_size=60))
@example("fr")
@example("co.uk")
@example("http://[/")
@example("xn--.com")
@example("xn--a.com")
@example("a.xn--zzzzzz99")
def test_any_text_is_a_domain_or_rejected(text: str) -> None:
    try:
        found = domain(text)
    except ValueError:
        return
    assert found == found.lower()
    assert found.isascii()
    # Directly below a public suffix such as `fr`, `www` is a registrable domain.
    if "[" not in found and domain(f"a.{found}") == found:
        assert domain(f"https://www.{found}/x") == found
