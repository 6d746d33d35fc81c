"""One platform per process: created again, restarted many times, refused if it differs.

Each scenario runs in a process of its own, which prints its findings as JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import databases
from tests.support.processes import GRAPHS, environment, ran

PRELUDE = """
import asyncio, gc, json, os, sys, threading, warnings
warnings.simplefilter("error", ResourceWarning)
import httpx
from starlette.applications import Starlette
from starlette.routing import Mount
from threadhold.platform import LangGraphPlatform, PlatformAlreadyConfigured


def make(**changes):
    arguments = {"config": "langgraph.json", "database_url": os.environ["KEPT_AT"], **changes}
    return LangGraphPlatform(arguments.pop("config"), **arguments)


def client(app):
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host", timeout=60)


def report(**found):
    print(json.dumps(found, default=str))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    config = {"graphs": {"echo": f"{GRAPHS}/echo.py:graph"}}
    (tmp_path / "langgraph.json").write_text(json.dumps(config))
    return tmp_path


def play(folder: Path, code: str, **env: str) -> Any:
    """Run code in a process. Return the last line it printed, from JSON."""
    env = environment(KEPT_AT=databases.url(folder / "x.db"), **env)
    ended = ran([sys.executable, "-c", PRELUDE + code], folder, env)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.usefixtures("each_database")
def test_platform_restarts_on_new_event_loops_without_leaks(project: Path) -> None:
    """Acknowledged writes are kept each time; no file, thread or task leaks."""
    found = play(
        project,
        """
async def once():
    platform = make()
    app = Starlette(routes=[Mount("/", app=platform)], lifespan=platform.lifespan)
    async with app.router.lifespan_context(app), client(app) as http:
        thread = (await http.post("/threads", json={"metadata": {"mine": True}})).json()
        body = {"assistant_id": "echo", "input": {"value": "a"}}
        run = await http.post(f"/threads/{thread['thread_id']}/runs/wait", json=body)
        found = await http.post("/threads/search", json={"metadata": {"mine": True}, "limit": 100})
        return run.json()["value"], len(found.json())


def count():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), threading.active_count()


answers = [asyncio.run(once()) for _ in range(2)]
first = count()
answers += [asyncio.run(once()) for _ in range(10)]
report(answers=answers, first=first, last=count())
""",
    )
    assert found["answers"] == [["a", number] for number in range(1, 13)]
    assert found["last"] == found["first"]


def test_second_platform_with_other_settings_is_refused_by_name(project: Path) -> None:
    found = play(
        project,
        """
first = make(env={"KEY": "hidden-one"})
make(env={"KEY": "hidden-one"})
refusals = []
for changes in (
    {"database_url": "sqlite:///y.db"}, {"max_body_bytes": 5}, {"hooks": object()},
    {"durability": "power-loss"}, {"env": {"KEY": "hidden-two"}}, {"studio": True},
    {"config": {"graphs": {"other": "./graph.py:graph"}}},
):
    open("graph.py", "w").close()
    try:
        make(**{"env": {"KEY": "hidden-one"}, **changes})
        refusals.append("accepted")
    except PlatformAlreadyConfigured as error:
        refusals.append(str(error))
report(refusals=refusals)
""",
    )
    for refusal, name in zip(
        found["refusals"],
        [
            "DATABASE_URI",
            "HTTP_MAX_REQUEST_BODY_BYTES",
            "hooks",
            "durability",
            "project_env",
            "LANGGRAPH_HTTP",
            "LANGSERVE_GRAPHS",
        ],
        strict=True,
    ):
        assert name in refusal
        assert "a process can serve one platform" in refusal
        assert "hidden" not in refusal


def test_platform_is_refused_after_an_import_of_langgraph_api(project: Path) -> None:
    found = play(
        project,
        """
os.environ |= {"LANGGRAPH_RUNTIME_EDITION": "sql", "REDIS_URI": "none"}
import langgraph_api.config
try:
    make()
    refusal = "accepted"
except PlatformAlreadyConfigured as error:
    refusal = str(error)
report(refusal=refusal)
""",
    )
    assert "langgraph_api was imported before the platform was made" in found["refusal"]


def test_sdk_client_created_before_the_platform_reaches_it(project: Path) -> None:
    found = play(
        project,
        """
from langgraph_sdk import get_client

early = get_client()
platform = make()


async def main():
    async with platform.lifespan():
        result = await early.runs.wait(None, "echo", input={"value": "early"})
        late = await get_client().runs.wait(None, "echo", input={"value": "late"})
        return result["value"], late["value"]


report(values=asyncio.run(main()))
""",
    )
    assert found["values"] == ["early", "late"]


def test_platform_without_lifespan_is_503(project: Path) -> None:
    found = play(
        project,
        """
platform = make()
app = Starlette(routes=[Mount("/", app=platform)])


async def main():
    async with client(app) as http:
        answer = await http.get("/ok")
        return answer.status_code, answer.json()["detail"]


report(answer=asyncio.run(main()), imported="langgraph_api.server" in sys.modules)
""",
    )
    assert found["answer"] == [
        503,
        "The platform is not running: the host app must enter platform.lifespan",
    ]
    assert found["imported"] is False


def test_second_concurrent_lifespan_is_refused_and_the_first_continues(project: Path) -> None:
    found = play(
        project,
        """
platform = make()


async def main():
    async with platform.lifespan(), client(platform) as http:
        try:
            async with make().lifespan():
                refusal = "started"
        except PlatformAlreadyConfigured as error:
            refusal = str(error)
        return refusal, (await http.get("/ok")).status_code


report(answer=asyncio.run(main()))
""",
    )
    refusal, status = found["answer"]
    assert "already running" in refusal
    assert status == 200


def test_platform_handles_lifespan_events_as_an_app(project: Path) -> None:
    """With lifespan events, as from `uvicorn module:platform`, it starts and stops by itself."""
    found = play(
        project,
        """
platform = make()
sent = []


async def main():
    events = asyncio.Queue()
    answered = asyncio.Event()

    async def send(message):
        sent.append(message["type"])
        answered.set()

    serving = asyncio.create_task(
        platform({"type": "lifespan", "asgi": {}, "state": {}}, events.get, send)
    )
    await events.put({"type": "lifespan.startup"})
    await answered.wait()
    async with client(platform) as http:
        status = (await http.get("/ok")).status_code
    await events.put({"type": "lifespan.shutdown"})
    await serving
    return status


report(status=asyncio.run(main()), sent=sent)
""",
    )
    assert found == {
        "status": 200,
        "sent": ["lifespan.startup.complete", "lifespan.shutdown.complete"],
    }


def test_process_keeps_its_log_level_and_environment(project: Path) -> None:
    (project / "langgraph.json").write_text(
        json.dumps(
            {
                "graphs": {"echo": f"{GRAPHS}/echo.py:graph"},
                "env": {"A": "file", "B": "file", "C": "file", "MIGRATIONS_PATH": "__inmem"},
            }
        )
    )
    found = play(
        project,
        """
import logging
logging.getLogger().setLevel(logging.ERROR)
platform = make(env={"C": "given"})
platform.app
report(
    level=logging.getLogger().level, migrations=os.environ["MIGRATIONS_PATH"],
    **{name: os.environ[name] for name in "ABC"},
)
""",
        A="process",
        C="process",
    )
    assert found["level"] == 40
    assert {name: found[name] for name in "ABC"} == {"A": "process", "B": "file", "C": "given"}
    assert "__inmem" not in found["migrations"]


# The arguments of a platform that cannot be made, and the error that says why.
UNSERVABLE = [
    ({"config": "none.json"}, "ConfigError", "none.json: no such file"),
    ({"database_url": "sqlite://"}, "BadDatabaseUrl", "does not name a plain file"),
    ({"database_url": "mysql://u@h/d"}, "BadDatabaseUrl", "not supported"),
    ({"redis_url": "redis://x"}, "ConfigError", "redis_url"),
    ({"durability": "eternal"}, "ConfigError", "durability"),
    ({"hooks": "./none.py:policy"}, "ConfigError", "./none.py:policy"),
    ({"hooks": "json:policy"}, "ConfigError", "json:policy"),
    ({"hooks": "./misspelt.py:policy"}, "ConfigError", "Unknown hook 'before_thread_creat'"),
]


def test_a_platform_that_cannot_be_served_raises_an_error_that_names_the_argument(
    project: Path,
) -> None:
    (project / "misspelt.py").write_text(
        "class Policy:\n    def before_thread_creat(self): ...\n\n\npolicy = Policy()\n"
    )
    # Each is made in a process of its own: hooks are loaded after the platform is configured.
    found = play(
        project,
        f"""
said = []
for arguments in {[arguments for arguments, _, _ in UNSERVABLE]!r}:
    reads, writes = os.pipe()
    if not os.fork():
        try:
            make(**arguments).app
            answer = ["none", "accepted"]
        except Exception as error:
            answer = [type(error).__name__, str(error)]
        os.write(writes, json.dumps(answer).encode())
        os._exit(0)
    os.close(writes)
    with open(reads) as answered:
        said.append(json.loads(answered.read()))
    os.wait()
report(said=said)
""",
    )
    for (arguments, error, words), (kind, said) in zip(UNSERVABLE, found["said"], strict=True):
        assert kind == error, arguments
        assert words in said, arguments


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power-loss", 2)])
def test_durability_sets_synchronous_of_sqlite(
    project: Path, durability: str, synchronous: int
) -> None:
    found = play(
        project,
        f"""
platform = make(durability={durability!r})


async def main():
    from langgraph_runtime_sql.runtime import current

    async with platform.lifespan():
        return await current().database.write(
            lambda conn: conn.raw.execute("PRAGMA synchronous").fetchone()[0]
        )


report(synchronous=asyncio.run(main()))
""",
    )
    assert found["synchronous"] == synchronous


CUSTOM_APP = """
from fastapi import FastAPI
from langgraph.config import get_store

app = FastAPI()


@app.get("/custom")
async def custom():
    store = get_store()
    await store.aput(("notes",), "a", {"text": "kept"})
    return (await store.aget(("notes",), "a")).value
"""


@pytest.mark.usefixtures("each_database")
def test_custom_routes_have_the_store_after_every_restart(project: Path) -> None:
    """The stock middleware keeps the first store it sees, which a restart in-process has closed."""
    (project / "routes.py").write_text(CUSTOM_APP)
    config = {"graphs": {"echo": f"{GRAPHS}/echo.py:graph"}, "http": {"app": "./routes.py:app"}}
    (project / "langgraph.json").write_text(json.dumps(config))
    found = play(
        project,
        """
platform = make()


async def once():
    async with platform.lifespan(), client(platform) as http:
        answer = await http.get("/custom")
        large = await http.post("/threads", content=b" " * (2**20 + 1))
        return answer.status_code, answer.json(), large.status_code


report(answers=[asyncio.run(once()) for _ in range(3)])
""",
    )
    assert found["answers"] == [[200, {"text": "kept"}, 413]] * 3
