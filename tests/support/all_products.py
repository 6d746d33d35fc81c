"""A server with all products, and a thread in each state that a page of the web app shows."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from my_agent.companies import register
from tests.support.diagnosis import LOG
from tests.support.icp import Person, Sites, url
from tests.support.openai_replies import say
from tests.support.openai_server import OpenAIServer
from tests.support.policy import member
from tests.support.processes import ROOT, Running
from tests.support.products import using
from tests.support.research import ARTICLES, QUESTION, publish, started, until
from tests.support.tutor import WRONG, found, teach
from tests.support.web_app import PRODUCTS, REPLY, model_environment, web_server, write_config
from tests.support.websites import websites

TENANT, USER = "acme", "ada"
LINK = "See [the manual](https://example.com/manual)."
LINKED = REPLY.replace("**from there**.", f"**from there**. {LINK}")
ARABIC = "ما الذي يحفظه النظام عن كل محادثة؟"
ARABIC_REPLY = (
    "يحفظ النظام حالة كل محادثة في **قاعدة بيانات**.\n\n1. تبدأ كل عملية من آخر نقطة.\n2. ثم تستمر."
)


@contextmanager
def all_products(folder: Path, endpoint: OpenAIServer) -> Iterator[tuple[Running, Person]]:
    """Serve all products without network, and give the server and a person of the ICP finder."""
    with ExitStack() as up:
        sites = up.enter_context(Sites())
        web = up.enter_context(websites())
        with using(url(folder)):
            register.ingest(
                ROOT / "my_agent/companies/reference/made_up_register.csv", report=_quiet
            )
        env = {
            "APP_ENV": "production",
            "THREAD_POLICY_AGENTS": "icp_finder,desk",
            "ICP_PRIVATE_NETWORKS": "127.0.0.0/8",
            "ICP_WEB_SEARCH": "false",
            "RESEARCH_WEB_SEARCH": "false",
            "RESEARCH_CORPUS": "false",
            "RESEARCH_PRIVATE_NETWORKS": "127.0.0.1/32",
            "RESEARCH_HOST_DELAY_SECONDS": "0",
            "RESEARCH_FEEDS": publish(web, "news", ARTICLES),
            "RESEARCH_DATA_FOLDER": str(folder / "task-data"),
            **model_environment(endpoint),
        }
        server = up.enter_context(web_server(folder, write_config(folder), **env))
        yield server, Person(sites, folder, TENANT, USER)


def _quiet(_: object) -> None:
    pass


async def fill(server: Running, person: Person, endpoint: OpenAIServer) -> dict[str, str]:
    """Make a thread for each page, and return the addresses of all pages by name."""
    made: dict[str, str] = {"start": "", "inbox": "?view=inbox", "missing": "?thread=" + "0" * 8}
    made |= {f"{each}-start": f"?assistant={each}" for each in PRODUCTS}

    def keep(name: str, graph: str, thread: str) -> None:
        made[name] = f"?assistant={graph}&thread={thread}"

    async with member(server, USER, TENANT) as api:
        for name, asked, answer in (
            ("chat", "What does a runtime keep?", LINKED),
            ("arabic", ARABIC, ARABIC_REPLY),
        ):
            endpoint.fallback = say(answer)
            keep(name, "chat", await _talk(api, "chat", asked))
        teach(
            endpoint, review=found(("agreement", "has", "have"), ("article", "a apple", "an apple"))
        )
        keep("tutor", "tutor", await _talk(api, "tutor", WRONG))
        endpoint.fallback = say(LINKED)
        keep(
            "diagnosis",
            "diagnosis",
            await _talk(api, "diagnosis", f"Checkout answers 503, why?\n{LOG}"),
        )
        question = {"questions": ["Shall I send the offer to Ines?"]}
        keep("question", "interrupt", await _run(api, "interrupt", "Send the offer?", question))
        failed = await _talk(api, "asking", "strict")
        await api.ended(failed, await api.run(failed, "asking", None, command={"resume": "twelve"}))
        keep("failed", "asking", failed)
        closed = await api.open(agent="desk")
        message = {"type": "human", "content": "An older question", "id": "m1"}
        await api.ended(closed, await api.run(closed, "chat", {"messages": [message]}))
        # The person goes on with another company.
        await api.post(f"/threads/{closed}/resume", {"website": "other.example"})
        keep("closed", "chat", closed)
        project = await started(api, QUESTION)
        await until(api, project, "completed")
        await api.http.patch(f"/threads/{project}", json={"metadata": {"title": QUESTION}})
        keep("research", "research", project)
    async with person.at(server):
        await person.open(website=person.website)
        await person.settle()
        keep("icp_finder", "icp_finder", person.thread or "")
    return made


async def _talk(api: Any, graph: str, text: str) -> str:
    message = {"type": "human", "content": text, "id": "m1"}
    return await _run(api, graph, text.splitlines()[0], {"messages": [message]})


async def _run(api: Any, graph: str, title: str, input: Any) -> str:
    thread: str = await api.thread(graph_id=graph, title=title)
    await api.ended(thread, await api.run(thread, graph, input))
    return thread
