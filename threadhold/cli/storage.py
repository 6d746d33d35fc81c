"""Storage: show what uses space (`threadhold storage`)."""

from collections.abc import Iterable
from pathlib import Path

import click

from langgraph_runtime_sql.retention_rules import KeepRule
from threadhold.admin.storage import examine
from threadhold.cli.keys import use_keys
from threadhold.cli.options import config_option, database_option, settings_options
from threadhold.config_file import read_config
from threadhold.settings import Settings

_UNITS = ("bytes", "KB", "MB", "GB")


@click.command()
@settings_options(config_option, database_option)
@click.option("--top", default=10, show_default=True, type=click.IntRange(1), help="How many.")
def storage(settings: Settings, top: int) -> None:
    """Show what uses space: tables, tenants, threads. Servers may run.

    It also shows what the rules in `sql.retention.checkpoints` of langgraph.json would delete now.
    Nothing is deleted.
    """
    use_keys(settings)
    project = Path(settings.langgraph_json)
    rules = read_config(project).retention.checkpoints if project.is_file() else ()
    found = examine(settings.database_url, rules, top=top)
    _print("Tables", found.tables.most_common())
    if set(found.tenants) - {""}:
        named = [(name or "(no tenant)", size) for name, size in found.tenants.most_common(top)]
        _print("Largest tenants", named)
    _print("Largest threads", found.threads.most_common(top))
    for rule, freed in zip(rules, found.freed, strict=True):
        click.echo(
            f"The rule {_shown(rule)} would free {_size(freed.bytes)}: {freed.checkpoints:,} "
            f"checkpoints in {freed.threads:,} threads"
        )


def _print(title: str, sizes: Iterable[tuple[str, int]]) -> None:
    lines = [(name, _size(size)) for name, size in sizes]
    if not lines:
        return
    click.echo(f"{title}:")
    width = max(len(name) for name, _ in lines)
    for name, size in lines:
        click.echo(f"  {name:<{width}}  {size:>12}")
    click.echo()


def _size(count: int) -> str:
    """Return a number of bytes in the unit in which it is short."""
    size = float(count)
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{count:,} bytes" if unit == "bytes" else f"{size:,.1f} {unit}"


def _shown(rule: KeepRule) -> str:
    keep = (
        "all"
        if rule.keeps_all
        else f"the last {rule.last}"
        if rule.last is not None
        else f"{rule.days:g} days"
    )
    about = [f"graph {rule.graph}"] * (rule.graph is not None)
    about += [f"{name}={value}" for name, value in rule.metadata.items()]
    return f"({', '.join(about) or 'all threads'}: keep {keep})"
