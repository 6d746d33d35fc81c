"""Write the generated pages: the reference, the lists of decisions, and the maps of the code.

python -m tools.reference            write the stale pages
python -m tools.reference --check    fail if a page is stale
"""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from prometheus_client import REGISTRY

from threadhold.settings import flags, variable
from tools import maps
from tools.maps import table

# --- names of the code; if a package moves, only these change

# The program of the library, and the one of the example application with commands of its own.
COMMAND = "threadhold.cli:main"
APP_COMMAND = "server.cli:main"
PLATFORM = "threadhold.options:PlatformOptions"
HOOKS = "langgraph_runtime_sql.hooks:Hooks"
STOCK = "threadhold.stock"
SERVER = "threadhold.settings:Settings"
# Title, introduction, settings class.
SETTINGS = (
    (
        "Environment",
        "Every server reads this.",
        "threadhold.settings:AppEnvironment",
    ),
    (
        "Server",
        (
            "`threadhold serve`, `dev` and `worker` read these from the environment, from `env` of "
            "`langgraph.json`, or from a file `.env` in the working directory. What comes first "
            "in this list wins; an option of the command line overrides all of them. Some are also "
            "[arguments of `LangGraphPlatform`](platform.md)."
        ),
        SERVER,
    ),
    (
        "Identity",
        "`threadhold.auth` reads these. See [tenants](../how-to/tenants-and-jwt.md).",
        "threadhold.auth.settings:IdentitySettings",
    ),
    (
        "Thread policy",
        "`hooks/threads.py` reads these. See [the policy](../how-to/thread-policy.md).",
        "hooks.thread_settings:ThreadSettings",
    ),
    ("Models", "The graphs in `my_agent` read these.", "my_agent.models:ModelSettings"),
    ("Document chat", "The graph `chat` reads these.", "my_agent.chat.settings:ChatSettings"),
    (
        "ICP finder",
        "The graph `icp_finder` reads these.",
        "my_agent.icp_finder.settings:IcpSettings",
    ),
    ("Tutor", "The graph `tutor` reads these.", "my_agent.tutor.settings:TutorSettings"),
    (
        "Research",
        "The graph `research` reads these.",
        "my_agent.research.settings:ResearchSettings",
    ),
    (
        "Diagnosis",
        "The graph `diagnosis` reads these.",
        "my_agent.diagnosis.settings:DiagnosisSettings",
    ),
)
# Modules that register metrics at import, and functions that register metrics when called.
METRICS = (
    "langgraph_runtime_sql.events.redis.wire",
    "langgraph_runtime_sql.gauges:gauges",
    "langgraph_runtime_sql.telemetry.metrics:process",
    "langgraph_runtime_sql.telemetry.metrics:runs",
    "langgraph_runtime_sql.limits.refusals:_counter",
    "langgraph_runtime_sql.events.usage:_counters",
    "langgraph_runtime_sql.queue.stuck_runs:_gauge",
    "threadhold.serving.connections",
    "hooks.decisions",
)

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTE = "<!-- Generated from the code by `python -m tools.reference`. Do not edit. -->\n\n"


def load(spec: str) -> Any:
    """Import `module:name`, or the module alone."""
    module, _, name = spec.partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, name) if name else loaded


def format_default(value: Any) -> str:
    """Format a default value. An empty value gives an empty cell."""
    if value is None or value == "" or value == ():
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(value)}`"
    return f"`{getattr(value, 'value', value)}`"


def prefix_of(settings: Any) -> str:
    """Return the prefix of the variables of a settings class."""
    return str(getattr(settings, "PREFIX", "") or settings.model_config.get("env_prefix", ""))


def variables(settings: Any) -> Iterator[tuple[str, ...]]:
    """Yield name, default and meaning of each variable that a settings class declares.

    If some are also arguments or options of the command line, the third of four cells names those.
    """
    documented = {name for base in settings.__mro__[1:] for name in own_fields(base)}
    arguments, options = load(PLATFORM).model_fields, flags(settings)
    names = [name for name in settings.model_fields if name not in documented]
    for name in names:
        field = settings.model_fields[name]
        also = (name if name in arguments else None, options.get(name))
        where = [", ".join(f"`{each}`" for each in also if each)] if options else []
        variable_ = f"`{prefix_of(settings)}{variable(settings, name)}`".upper()
        yield variable_, format_default(field.default), *where, field.description or ""


def own_fields(settings: Any) -> list[str]:
    """Return the fields of a class that has a table of its own."""
    has_table = any(settings is load(spec) for _, _, spec in SETTINGS)
    return list(settings.model_fields) if has_table else []


def settings_page() -> str:
    """Make the page of environment variables, from the settings classes."""
    parts = [
        "# Settings\n",
        (
            "Each setting is an environment variable. An empty variable counts as not set. Commas "
            "separate the items of a list.\n"
        ),
    ]
    for title, introduction, spec in SETTINGS:
        settings = load(spec)
        also = ["Argument, option"] if flags(settings) else []
        parts += [
            f"## {title}\n",
            introduction + "\n",
            table(("Variable", "Default", *also, "Meaning"), variables(settings)),
        ]
    parts.append(LANGGRAPH_API)
    return "\n".join(parts)


LANGGRAPH_API = """\
## langgraph-api

`langgraph-api` reads settings of its own. Threadhold does not rename them. The most important ones:

| Variable | Default | Meaning |
| --- | --- | --- |
| `BG_JOB_MAX_RETRIES` | `3` | Attempts at a run whose process dies or whose database fails |
| `BG_JOB_TIMEOUT_SECS` | `86400` | Longest time that one attempt at a run may take |
| `BG_JOB_ISOLATED_LOOPS` | `false` | Give each run an event loop in a thread of its own |
| `RESUMABLE_STREAM_TTL_SECONDS` | `120` | How long Postgres keeps the events of runs that are not resumable, at least 60. `sql.retention` is for resumable runs. |

Threadhold sets the variables that select a storage backend or weaken security, and ignores values
from outside for them.
"""


def arguments(command: click.Command) -> Iterator[tuple[str, str, str]]:
    """Yield name, default and meaning of what a command accepts, except hidden options."""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            if parameter.hidden:
                continue
            default = parameter.default if parameter.show_default else None
            meaning = (parameter.help or "").replace("  [", " [")
            required = "Required. " if parameter.required else ""
            names = ", ".join(f"`{name}`" for name in parameter.opts)
            yield names, format_default(default), required + meaning
        else:
            yield f"`{(parameter.name or '').upper()}`", "", "Required argument."


def cli_page() -> str:
    """Make the page of commands and their options, from click."""
    main, app = load(COMMAND), load(APP_COMMAND)
    shared = {name: each for name, each in main.commands.items() if not each.hidden}
    own = {name: each for name, each in app.commands.items() if name not in shared}
    parts = [
        "# Command line\n",
        (
            "`threadhold COMMAND --help` prints the same. Each command reads the "
            "[settings](settings.md); an option overrides the variable.\n"
        ),
        *command_sections("threadhold", shared),
        "## The example application\n",
        "`python -m server` has the commands above and its own.\n",
        *command_sections("python -m server", own),
    ]
    return "\n".join(parts)


def command_sections(program: str, commands: Mapping[str, click.Command]) -> Iterator[str]:
    """Yield a section for each command: usage, description, options."""
    for name, command in commands.items():
        if isinstance(command, click.Group):
            inner = {f"{name} {each}": found for each, found in command.commands.items()}
            yield from command_sections(program, inner)
            continue
        usage = " ".join([program, name, *command.collect_usage_pieces(click.Context(command))])
        yield f"## {name}\n"
        yield f"    {usage}\n"
        yield inspect.cleandoc(command.help or "") + "\n"
        if rows := list(arguments(command)):
            yield table(("Option", "Default", "Meaning"), iter(rows))
        if isinstance(command, click.Group):
            inner = {f"{name} {each}": found for each, found in command.commands.items()}
            yield from command_sections(program, inner)


def metrics() -> Iterator[tuple[str, str, str, str]]:
    """Yield name, kind, labels and meaning of each metric that the code registers."""
    for spec in METRICS:
        if ":" in spec:
            load(spec)()
        else:
            load(spec)
    # Search the registry by name: an imported module can register metrics of other modules too.
    registered: dict[str, Any] = dict(REGISTRY._names_to_collectors)
    found = {
        collector: name
        for name, collector in sorted(registered.items(), reverse=True)
        if name.startswith("threadhold_") and not name.endswith("_created")
    }
    for collector in sorted(found, key=lambda each: str(each._name)):
        kind = str(collector._type)
        name = f"{collector._name}_total" if kind == "counter" else collector._name
        labels = ", ".join(f"`{label}`" for label in collector._labelnames)
        yield f"`{name}`", kind, labels, str(collector._documentation)


METRICS_HEAD = """\
# Metrics

    curl localhost:8123/metrics

prints the metrics in the format of Prometheus, with `--workers` those of all processes;
`?format=json` prints a summary. Outside of `APP_ENV=local_dev` the route is closed until a setting
[opens it](../how-to/observability.md#open-the-metrics).

## Threadhold
"""

METRICS_TAIL = """\
A labelled metric appears when it has its first value. Of each counter and histogram, `NAME_created` is the
time since which it counts, in seconds since 1970.

## langgraph-api

| Metric | Kind | Labels | Meaning |
| --- | --- | --- | --- |
| `lg_api_http_requests_total` | counter | `method`, `path`, `status` | Requests answered |
| `lg_api_http_requests_latency` | histogram | `method`, `path` | Time to answer, in milliseconds |
| `lg_api_workers_max` | gauge | | Runs that this process may execute at once |
| `lg_api_workers_active` | gauge | | Runs that this process executes now |
| `lg_api_workers_available` | gauge | | Free slots |

`target_info` and the names that begin with `process_` and `python_` are the standard ones of the
Prometheus client for Python.
"""


def metrics_page() -> str:
    """Make the page of metrics: ours from the registry, and those of langgraph-api."""
    head = ("Metric", "Kind", "Labels", "Meaning")
    return "\n".join([METRICS_HEAD, table(head, metrics()), METRICS_TAIL])


def platform_page() -> str:
    """Make the page of the platform's options, from their model."""
    options, settings = load(PLATFORM).model_fields, load(SERVER)
    rows = (
        (
            f"`{name}`",
            format_default(field.default),
            f"`{variable(settings, name)}`" if name in settings.model_fields else "",
            field.description or "",
        )
        for name, field in sorted(options.items(), key=lambda each: each[1].kw_only is not False)
    )
    return "\n".join(
        [
            "# LangGraphPlatform\n",
            (
                "`LangGraphPlatform(config, **options)` is an ASGI application with a `lifespan`. "
                "[Mount it](../tutorials/mount.md) in Starlette or FastAPI. `threadhold serve` "
                "reads the variable; your own application passes the option.\n"
            ),
            table(("Option", "Default", "Variable", "Meaning"), rows),
            PLATFORM_TAIL,
        ]
    )


PLATFORM_TAIL = """\
`langgraph_api` reads its configuration once for each process. A second platform with another
configuration raises `PlatformAlreadyConfigured`. The same platform can be started and stopped again.

| Member | Meaning |
| --- | --- |
| `await platform.user(request)` | The [user of a request](../how-to/own-routes.md) of the host's own routes |
| `platform.include(routes)` | Serve the host's own routes beside the API's |
| `platform.describe_in(app)` | Add the API's routes to the `/docs` of a FastAPI host |
| `platform.lifespan` | Start and stop the database, the queue and the schedulers. The host enters it |
| `platform.app` | The stock application inside, for its routes |
| `platform.config` | The configuration as read |
"""


def hooks_page() -> str:
    """Make the page of hooks and their arguments, from the protocol."""
    hooks = load(HOOKS)
    rows = []
    for name, function in vars(hooks).items():
        if name.startswith(("before_", "after_")):
            names = ", ".join(list(inspect.signature(function).parameters)[1:])
            rows.append(
                (f"`{name}({names})`", " ".join(inspect.cleandoc(function.__doc__ or "").split()))
            )
    return "\n".join(
        [
            "# Hooks\n",
            (
                "[Refuse or extend writes with hooks](../how-to/hooks.md) shows how to use them. Each "
                "hook runs inside the transaction of the write, before its commit.\n"
            ),
            table(("Hook", "When"), iter(rows)),
        ]
    )


def decisions_of(folder: str, title: str, introduction: str) -> str:
    """Make the index of the decision records in a folder of `docs/`, from their titles."""
    rows, superseded = [], []
    for path in sorted((ROOT / "docs" / folder).glob("[0-9]*.md")):
        text = path.read_text()
        [name] = re.findall(r"^# \d+\. (.+)$", text, re.MULTILINE)
        [status] = re.findall(r"^\*\*Status:\*\* (.+)$", text, re.MULTILINE)
        number, link = str(int(path.name[:4])), f"[{name}]({path.name})"
        if status == "accepted":
            rows.append((number, link))
        else:
            superseded.append(f"- {number}. {link}, {status}")
    parts = [f"# {title}\n", introduction, table(("No.", "Decision"), rows)]
    if superseded:
        parts += ["## Superseded\n", "\n".join(superseded) + "\n"]
    return "\n".join(parts)


def example_decisions_page() -> str:
    """Make the index of the decisions about the example application."""
    return decisions_of(
        "decisions/example",
        "Decisions of the example application",
        (
            "These records are about `hooks/`, `my_agent/`, `server/` and the pages of the products. "
            "The [decisions of the library](../index.md) share the numbers.\n"
        ),
    )


def decisions_page() -> str:
    """Make the index of the decisions about the library."""
    return decisions_of(
        "decisions",
        "Decisions",
        (
            "Each record says why the code of the library is as it is. The "
            "[decisions of the example application](example/index.md) have a list of their own. "
            "A decision that changes gets a new record, and the old one names it.\n"
        ),
    )


def stock_page() -> str:
    """Make the page of what Threadhold replaces, changes or uses of stock packages, from the table."""
    replaced = (*load(f"{STOCK}.table:BEFORE_IMPORT"), *load(f"{STOCK}.table:REPLACED"))
    changed, used = load(f"{STOCK}.elsewhere:CHANGED"), load(f"{STOCK}.elsewhere:USED")
    return "\n".join(
        [
            STOCK_HEAD,
            *("## Replaced\n", _stock_table(replaced)),
            *("## Changed by other modules\n", _stock_table(changed)),
            *("## Used by an internal name\n", _stock_table(used)),
            STOCK_TAIL,
        ]
    )


def _stock_table(rows: Iterable[Any]) -> str:
    head = ("Part", "Expected", "By", "Because", "Tried with")
    cells = (
        (
            f"`{row.name}`",
            f"`{row.signature}`",
            ", ".join(f"`{each}`" for each in row.needed_by),
            row.why,
            f"{row.package} {', '.join(row.versions)}",
        )
        for row in rows
    )
    return table(head, cells)


STOCK_HEAD = """\
# What Threadhold replaces of stock packages

`table.py` has one row for each part that a function of this folder replaces, in the order of installation.
`elsewhere.py` has the parts that other modules change, or use by a name that is internal. The platform checks
all rows at its start, before it replaces anything. If a part is missing or has other parameters, the start
fails with the row: what, why, expected, found, and the versions that were tried.

`routes[name]` is the route of a list that the function `name` answers. `attribute` means that the instances of
the class have it.
"""

STOCK_TAIL = """\
## Replace or use another part

To replace a part, add a row to `table.py`, and a function here that takes the stock part and returns what takes
its place. A part that another module changes, or uses although its name begins with `_`, gets a row in
`elsewhere.py`. Then run `python -m tools.reference`.

A new version of a package gets into a row's `versions` after `docs/how-to/upgrade.md` was followed.
"""


PAGES: dict[str, Callable[[], str]] = {
    "reference/cli.md": cli_page,
    "reference/settings.md": settings_page,
    "reference/metrics.md": metrics_page,
    "reference/modules.md": maps.modules_page,
    "reference/platform.md": platform_page,
    "reference/hooks.md": hooks_page,
    "decisions/example/index.md": example_decisions_page,
    "decisions/index.md": decisions_page,
    "../threadhold/stock/README.md": stock_page,
}
"""The generated pages: the path in `docs/`, and the function that makes the page."""

SECTIONS: dict[str, dict[str, Callable[[], str]]] = {
    "../AGENTS.md": {"folders": maps.folders_section},
    "explanation/architecture.md": {"rooms": maps.rooms_section, "tables": maps.tables_section},
}
"""The generated parts of written pages: the path from `docs/`, the name in its markers, the function."""


def render(name: str) -> str:
    """Return a page as it should be.

    Raises:
        ValueError: a written page does not have the markers of one of its generated sections.
    """
    if name in PAGES:
        return NOTE + PAGES[name]()
    text = (DOCS / name).read_text()
    for section, make in SECTIONS[name].items():
        begin, end = f"<!-- Generated: {section} -->\n", f"<!-- End of {section} -->"
        head, has_begin, rest = text.partition(begin)
        _, has_end, tail = rest.partition(end)
        if not has_begin or not has_end:
            raise ValueError(f"docs/{name} has no section between {begin.strip()} and {end}")
        text = f"{head}{begin}\n{make()}\n{end}{tail}"
    return text


def find_stale() -> list[str]:
    """Find the pages that differ from the code."""
    return [
        name
        for name in (*PAGES, *SECTIONS)
        if not (DOCS / name).exists() or (DOCS / name).read_text() != render(name)
    ]


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a page is stale.")
def main(check: bool) -> None:
    """Write the generated pages of the documentation."""
    names = find_stale()
    if not check:
        for name in names:
            (DOCS / name).write_text(render(name))
            click.echo(f"docs/{name}: written")
    elif names:
        for name in names:
            click.echo(f"docs/{name}: stale; run `python -m tools.reference`", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
