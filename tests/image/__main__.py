"""Builds the images, step by step, and serves with them: `python -m tests.image`.

Two images: that of `threadhold dockerfile` for a project with authentication, a vector index and
components of `ui`, and `deploy/Dockerfile`. Needs root, buildah and mmdebstrap, a package index and
a Debian mirror; no registry and no container engine.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.image import bases
from tests.image.builder import buildah, built, command_of, container, ran, require, running
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import ROOT
from tools import pythons, release

PORT = 8123
PATIENCE = 180.0
# The archive of the Postgres project, which not every network reaches.
POSTGRES = re.compile(r"^RUN apt-get update \\\n(?:.*\\\n)*.*apt/lists/\*$", re.MULTILINE)
DEBIAN_POSTGRES = (
    "RUN apt-get update && apt-get install --yes --no-install-recommends postgresql-client"
    " && mkdir -p /usr/lib/postgresql && ln -s 15 /usr/lib/postgresql/18"
)


def main() -> None:
    """Build and serve both images."""
    parser = argparse.ArgumentParser(prog="python -m tests.image")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "image")
    parser.add_argument("--wheel", type=Path, help="instead of building one")
    parser.add_argument(
        "--debian-postgres",
        action="store_true",
        help="take pg_dump of Debian instead of that of the Postgres project",
    )
    given = parser.parse_args()
    require()
    given.cache.mkdir(parents=True, exist_ok=True)
    bases.make_python(given.cache, "3.13-slim", pythons.find("3.13"))
    bases.make_node(given.cache, "22-slim")
    with tempfile.TemporaryDirectory(prefix="threadhold-image-") as place:
        folder = Path(place)
        wheel = given.wheel or release.build(folder / "dist")[1]
        of_project(folder, wheel, debian=given.debian_postgres)
        of_checkout(folder, debian=given.debian_postgres)


def of_project(folder: Path, wheel: Path, *, debian: bool) -> None:
    """Build what `threadhold dockerfile` prints for a new project, and serve with it."""
    project = folder / "project"
    threadhold = [sys.executable, "-P", "-m", "threadhold"]
    ran([*threadhold, "init", str(project)])
    (project / ".env").write_text("API_TOKEN=secret-of-this-machine\n")
    (project / "data").mkdir()
    (project / "data" / "private.txt").write_text("private")
    (project / "ui.tsx").write_text("export default { card: () => <b>Hello</b> };\n")
    config = json.loads((project / "langgraph.json").read_text())
    config["ui"] = {"agent": "./ui.tsx"}
    config["store"] = {"index": {"dims": 2, "embed": "./agent/embed.py:embed", "fields": ["$"]}}
    (project / "agent" / "embed.py").write_text(
        "async def embed(texts):\n    return [[1.0, 0.0] for _ in texts]\n"
    )
    (project / "langgraph.json").write_text(json.dumps(config))
    shutil.copy(wheel, project)
    printed = ran([*threadhold, "dockerfile", "--wheel", str(project / wheel.name)], cwd=project)
    built(_reachable(printed, debian=debian), project, "threadhold-project", folder)
    with served("threadhold-project", folder, API_TOKEN="of-the-test") as (url, name):
        listed = buildah("run", name, "--", "sh", "-c", "ls -a /app /app/data 2>&1; id -u")
        check(".env" not in listed.split(), listed)
        check("private.txt" not in listed and listed.split()[-1] == "10001", listed)
        check(httpx.post(f"{url}/threads", json={}).status_code == 401, "open to everyone")
        headers = {"authorization": "Bearer of-the-test"}
        body = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "Hi"}]}}
        answer = httpx.post(f"{url}/runs/wait", json=body, headers=headers, timeout=60)
        check("message 1 of this thread" in answer.text, answer.text)
        item = {"namespace": ["a"], "key": "a", "value": {"text": "b"}}
        put = httpx.put(f"{url}/store/items", json=item, headers=headers)
        check(put.is_success, put.text)
        shown = buildah("run", name, "--", "sh", "-c", "node --version; pg_dump --version")
        check("v" in shown and "pg_dump" in shown, shown)
    print("threadhold dockerfile: built and served", flush=True)


def of_checkout(folder: Path, *, debian: bool) -> None:
    """Build `deploy/Dockerfile` of this checkout, and serve with it."""
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    built(_reachable(text, debian=debian), ROOT, "threadhold-checkout", folder)
    env = {"JWT_SECRET": SECRET, "JWT_AUDIENCE": "here", "JWT_ISSUER": "me"}
    env["DATABASE_URL"] = "sqlite:////tmp/data.db"
    with served("threadhold-checkout", folder, **env) as (url, name):
        page = httpx.get(url, headers={"accept": "text/html"}).text
        check('id="root"' in page, page[:500])
        check(httpx.post(f"{url}/threads", json={}).status_code == 401, "open to everyone")
        ada = bearer(token(aud="here", iss="me"))
        check(httpx.post(f"{url}/threads", json={}, headers=ada).is_success, "refuses a token")
        listed = buildah("run", name, "--", "sh", "-c", "ls -a /app; id -u")
        check(not {".git", ".env", "tests"} & set(listed.split()), listed)
        check(listed.split()[-1] == "10001", listed)
    print("deploy/Dockerfile: built and served", flush=True)


@contextmanager
def served(image: str, folder: Path, **env: str) -> Iterator[tuple[str, str]]:
    """Run an image as it is, until the end of the block; give its URL and its container."""
    url, log = f"http://127.0.0.1:{PORT}", folder / f"{image}.log"
    with container(image) as name, running(name, command_of(image), log, **env):
        deadline = time.monotonic() + PATIENCE
        while not _answers(url):
            if time.monotonic() > deadline:
                raise SystemExit(f"image: {image} does not serve:\n{log.read_text()[-4000:]}")
            time.sleep(0.5)
        yield url, name


def check(fine: bool, otherwise: str) -> None:
    """End with a message unless something holds."""
    if not fine:
        raise SystemExit(f"image: FAILED: {otherwise}")


def _reachable(dockerfile: str, *, debian: bool) -> str:
    """Return a Dockerfile whose `pg_dump` comes from Debian, if that is asked for."""
    if not debian:
        return dockerfile
    found, count = POSTGRES.subn(DEBIAN_POSTGRES, dockerfile)
    check(count == 1, "no step installs Postgres")
    return found


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ok", timeout=5).is_success
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    main()
