"""Stance: a word alone says nothing; level, negation, value and what follows decide."""

import pytest

from my_agent.diagnosis.reading import stance

TROUBLE = [
    ("write failed: No space left on device", "error"),
    ("java.lang.OutOfMemoryError: Java heap space", "error"),
    ("kernel: Out of memory: Killed process 4321 (java) total-vm:8123456kB", "info"),
    ("Memory cgroup out of memory: Killed process 77", ""),
    ("Reason:       OOMKilled", ""),
    ("Exit Code:    137", ""),
    ("  DiskPressure   True   KubeletHasDiskPressure   kubelet has disk pressure", ""),
    ("Ready                       False", ""),
    ("0/3 nodes are available: 3 Insufficient memory.", "warning"),
    ("Back-off restarting failed container web in pod web-1", "warning"),
    ("Liveness probe failed: HTTP probe failed with statuscode: 500", "warning"),
    ("x509: certificate has expired or is not yet valid", ""),
    ('{"msg":"call failed","error":"connection refused","path":"/a/b/c"}', ""),
    ('10.0.0.1 - - [x] "GET /cart HTTP/1.1" 502 157', "info"),
    ("task 0 failed", "info"),
    ("5 errors found", "info"),
    ("no leader elected for partition 3", "info"),
    ("couldn't connect to the database", "info"),
    ("lost connection to broker 2", "info"),
    ("Deadlock found when trying to get lock; try restarting transaction", ""),
    ("Environment variable DEPLOY_ENV is undefined", ""),
    ("probe of vesafb0 failed with error -6", ""),
    ("  c1t1d0    UNAVAIL      4     1     0  cannot open", ""),
    ("Directory index forbidden by rule: /var/www/html/", "error"),
    ("slow query, retrying", "warning"),
    ("connection reset by peer while reading, then recovered", "error"),
]
NO_TROUBLE = [
    ("java -XX:+HeapDumpOnOutOfMemoryError -Xmx2g -jar app.jar", "info"),
    ("certificate valid until 2031", "info"),
    ("deadlock detector enabled", "info"),
    ("disk full check passed, 12 % used", "info"),
    ("scan finished with 0 errors", "info"),
    ("no OOM kills since the start", "info"),
    ("connect timed out, retrying ... succeeded", "info"),
    ("started with error_log=/var/log/x", "info"),
    ("writing to /var/log/error/failed.log", "info"),
    ("Registered ErrorHandler for route /", "info"),
    ("ok=12 changed=0 unreachable=0 failed=0", "info"),
    ("Failed password for root from 192.0.2.4 port 22 ssh2", "info"),
    ("pam_unix(sshd:auth): authentication failure; logname= uid=0", ""),
    ("connection timeout=30s pool=5", "info"),
    ("retry policy: maxFailures=3, fail_timeout=10s", "info"),
    ("Restart Policy: OnFailure", ""),
    ("DiskPressure  False  KubeletHasNoDiskPressure  kubelet has no disk pressure", ""),
    ("node.kubernetes.io/unreachable:NoExecute op=Exists for 300s", ""),
    ("RollingUpdateStrategy:  25% max unavailable, 25% max surge", ""),
    ("Liveness: http-get http://:8079/ delay=300s timeout=1s #success=1 #failure=3", ""),
    ("Exit Code: 0", ""),
    ("request completed error=null status=200", "info"),
    ('{"error":null,"ok":true}', ""),
    ("will shut down if the health check fails", "info"),
    ("checking for errors", "info"),
    ("0 of 20 requests failed", "info"),
    ("GET /error/page HTTP/1.1 200", "info"),
    ("tests: 30 passed, 0 failed, 0 errors", "info"),
    ("recovered from 3 failed attempts, now healthy", "info"),
    ("Intel machine check reporting enabled on CPU#0.", ""),
    ("2 L3 EDRAM error(s) (dcr 0x0157) detected and corrected over 282 seconds", "info"),
    ('table "jobs" does not exist, skipping', "info"),
    ("object space 22144K, 98% used [0xd0cb0000,0xd21ef2c8,0xd2250000)", ""),
    ("scan finished with 0 errors", "error"),
    ("shutting down gracefully", "warning"),
    ("", ""),
    ("\ud800\x00", ""),
]


@pytest.mark.parametrize(("text", "level"), TROUBLE)
def test_says_that_something_is_wrong(text: str, level: str) -> None:
    assert stance.of(text, level) == "trouble"


@pytest.mark.parametrize(("text", "level"), NO_TROUBLE)
def test_does_not_say_that_something_is_wrong(text: str, level: str) -> None:
    assert stance.of(text, level) != "trouble"


@pytest.mark.parametrize(
    "text", ["health check passed", "certificate valid until 2031", "0 errors", "failed: 0"]
)
def test_says_that_all_is_well(text: str) -> None:
    assert stance.of(text) == "fine"


def test_an_empty_error_is_trouble() -> None:
    assert stance.of("", "error") == "trouble"


def test_characters_keep_their_places_in_lower_case() -> None:
    text = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}stanbul: CALL FAILED"
    assert len(stance.lower(text)) == len(text)
    assert stance.of(text) == "trouble"
