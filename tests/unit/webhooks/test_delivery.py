"""How webhooks are signed, and when they are sent again."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from random import Random

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from langgraph_runtime_sql.key_texts import webhook_key
from langgraph_runtime_sql.webhooks import delivery, signing

KEYS = (b"n" * 32, b"o" * 32)
BODY = json.dumps({"run_id": "é"}).encode()


def signed(tenant: str | None, keys: tuple[bytes, ...] = KEYS) -> dict[str, str]:
    return signing.headers(keys, tenant, "msg_1", int(datetime.now(UTC).timestamp()), BODY)


def verify(key: bytes, headers: dict[str, str], body: bytes = BODY) -> object:
    return Webhook(signing.write_secret(key)).verify(body, headers)


@pytest.mark.parametrize("key", KEYS)
def test_public_package_verifies_current_and_earlier_secret(key: bytes) -> None:
    assert verify(key, signed(None)) == {"run_id": "é"}


def test_changed_body_or_id_is_refused() -> None:
    for headers, body in ((signed(None), BODY + b" "), ({**signed(None), "webhook-id": "2"}, BODY)):
        with pytest.raises(WebhookVerificationError):
            verify(KEYS[0], headers, body)


def test_secret_of_one_tenant_verifies_no_webhook_of_another() -> None:
    ann, bob = (signing.of_tenant(KEYS[0], name) for name in ("ann", "bob"))
    assert verify(ann, signed("ann")) == {"run_id": "é"}
    for key in (bob, KEYS[0]):
        with pytest.raises(WebhookVerificationError):
            verify(key, signed("ann"))


def test_without_secret_there_is_an_id_and_no_signature() -> None:
    assert signed(None, ()).keys() == {"webhook-id", "webhook-timestamp"}


@pytest.mark.parametrize("text", ["whsec_", "whsec_c2hvcnQ=", "whsec_!", "é"])
def test_bad_secret_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="webhook secret"):
        webhook_key(text)


def test_backoff_grows_with_jitter_and_reaches_a_limit(rng: Random) -> None:
    waits = [delivery.backoff(attempt) for attempt in range(1, 40)]
    assert all(late > early for early, late in pairwise(waits[:7]))
    assert max(waits) <= 1.25 * delivery.MAX_RETRY_SECONDS
    assert len(set(waits)) == len(waits)


def test_retry_after_is_seconds_or_a_date_and_at_most_a_day() -> None:
    assert delivery.retry_after("120") == 120
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500 < delivery.retry_after(date) <= 3600
    assert delivery.retry_after("99999999") == 24 * 3600
    bad = (None, "soon", "-5", "Fri, 31 Dec 99999999999 23:59:59 GMT")
    assert [delivery.retry_after(each) for each in bad] == [0, 0, 0, 0]
    assert {delivery.retry_after("9" * length) for length in (6, 400, 5_000)} == {24 * 3600}
