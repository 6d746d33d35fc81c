"""Replacements: replace parts of stock packages, after a check that they are the known ones.

The parts are internal to `langgraph_api`, so a new release may rename or change them without a notice.
"""

import dis
import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from packaging.specifiers import SpecifierSet

from langgraph_runtime_sql.errors import RuntimeSqlError

# With which the rows without other versions were tried: the stable release, then newer ones.
API_VERSIONS = ("0.16.7", "0.17.0rc6", "0.18.0.dev12")


@dataclass(frozen=True)
class Replacement:
    """A part of a stock package that Threadhold replaces, changes or uses.

    Attributes:
        module: The module.
        attribute: The name in the module, with dots inside of an object or class. `routes[endpoint]` is
            the route of a list whose endpoint is the function `endpoint`.
        why: What would happen without the replacement, or what the part is needed for.
        signature: What is expected: names, kinds and defaults of the parameters, without types. If the
            part cannot be called, the name of its type. `ATTRIBUTE`: instances of the class have it.
        replace: Takes the stock part and returns what takes its place. Of a route it takes the route,
            and returns the route's new app. None: the part is only checked, because `by` changes or
            uses it.
        by: The modules of Threadhold that change or use the part, if it is not that of `replace`.
        unless: Key of `http` in the configuration with which the part does not exist.
        versions: Versions of `package` with which rows of it were tried, the stable one first.
        releases: The releases of `package` that the row is about, as a version specifier. Empty means
            all. The rows of a part that changes are together in the table.
        package: The distribution that has the module.
    """

    module: str
    attribute: str
    why: str
    signature: str
    replace: Callable[[Any], Any] | None = None
    by: tuple[str, ...] = ()
    unless: str = ""
    versions: tuple[str, ...] = API_VERSIONS
    releases: str = ""
    package: str = "langgraph-api"

    @property
    def name(self) -> str:
        """The dotted name of the part."""
        return f"{self.module}.{self.attribute}"

    @property
    def needed_by(self) -> tuple[str, ...]:
        """The modules of Threadhold that replace, change or use the part."""
        return self.by or (str(getattr(self.replace, "__module__", "")),)

    @property
    def tried(self) -> tuple[str, ...]:
        """The versions with which the row was tried."""
        return tuple(each for each in self.versions if self.is_about(each))

    def is_about(self, version: str) -> bool:
        """Return whether the row is about a version of its package."""
        # Of a package that is not installed, the version is no version.
        return not self.releases or SpecifierSet(self.releases, prereleases=True).contains(version)


ATTRIBUTE = "attribute"
"""The signature of an attribute that the methods of a class set in its instances."""


def instead(value: Any) -> Callable[[Any], Any]:
    """Return a `replace` that needs nothing of the stock part."""

    def replace(stock: Any) -> Any:
        return value

    replace.__module__ = str(getattr(value, "__module__", __name__))
    return replace


class StockChanged(RuntimeSqlError):
    """The installed version of a stock package is not the known one. Nothing was replaced."""


@dataclass(frozen=True)
class _Place:
    """Where a part is: `name` in `holder`."""

    holder: Any
    name: str
    found: Any


def install_all(rows: Iterable[Replacement]) -> None:
    """Check all rows, and then install the replacements in their order. Call once per process.

    Raises:
        StockChanged: a part is missing, or is not the expected one. Nothing was replaced.
    """
    for row, place in check(rows):
        if row.replace is not None:
            # Anew: an earlier row may have replaced the same part.
            stock = place.found if _is_route(row) else getattr(place.holder, place.name)
            setattr(place.holder, place.name, row.replace(stock))


def check(rows: Iterable[Replacement]) -> list[tuple[Replacement, _Place]]:
    """Return where the part of each row is.

    Raises:
        StockChanged: a part is missing, or is not the expected one.
    """
    places, wrong = list[tuple[Replacement, _Place]](), list[str]()
    for row in about_installed(rows):
        if _is_switched_off(row):
            continue
        place = _find(row)
        if isinstance(place, str) or _signature(row, place) != row.signature:
            wrong.append(_problem(row, place))
        else:
            places.append((row, place))
    if wrong:
        raise StockChanged("\n".join(wrong))
    return places


def about_installed(rows: Iterable[Replacement]) -> list[Replacement]:
    """Return the rows that are about the installed versions."""
    return [row for row in rows if row.is_about(_version(row.package))]


def _is_switched_off(row: Replacement) -> bool:
    if not row.unless:
        return False
    from langgraph_api import config

    return bool((config.HTTP_CONFIG or {}).get(row.unless))


def _is_route(row: Replacement) -> bool:
    return row.attribute.endswith("]")


def _find(row: Replacement) -> _Place | str:
    """Return where the part of a row is, or what is missing."""
    try:
        found: Any = importlib.import_module(row.module)
    except ImportError as error:
        return f"no module {row.module} ({error})"
    holder, name = None, ""
    path, _, endpoint = row.attribute.removesuffix("]").partition("[")
    for name in path.split("."):
        holder = found
        try:
            found = getattr(holder, name)
        except AttributeError:
            if not _is_of_instances(holder, name):
                return f"no attribute {name!r}"
            found = _OF_INSTANCES
    if not endpoint:
        return _Place(holder, name, found)
    for route in found:
        function = getattr(route, "endpoint", None)
        module = str(getattr(function, "__module__", ""))
        if getattr(function, "__name__", "") == endpoint and module.startswith("langgraph_api"):
            return _Place(route, "app", route)
    return f"no route of the function {endpoint!r}"


_OF_INSTANCES = object()


def _is_of_instances(holder: Any, name: str) -> bool:
    """Return whether instances of a class have an attribute: a field, or what one of its methods sets."""
    if not isinstance(holder, type):
        return False
    if name in getattr(holder, "__dataclass_fields__", ()):
        return True
    members = (each for base in holder.__mro__ for each in vars(base).values())
    return any(
        step.opname == "STORE_ATTR" and step.argval == name
        for each in members
        if inspect.isfunction(each) and name in each.__code__.co_names
        for step in dis.get_instructions(each)
    )


def signature(found: Any) -> str:
    """Return the parameters of a function or class, without types; of anything else its type."""
    if found is _OF_INSTANCES:
        return ATTRIBUTE
    if not callable(found):
        return type(found).__name__
    parameters = inspect.signature(found).parameters.values()
    return str(inspect.Signature([_plain(each) for each in parameters]))


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    if default is not inspect.Parameter.empty and not isinstance(default, _PLAIN):
        # The text of an object may contain its address.
        default = _ANY
    return parameter.replace(annotation=inspect.Parameter.empty, default=default)


class _Any:
    def __repr__(self) -> str:
        return "..."


_ANY = _Any()
_PLAIN = (str, int, float, type(None))


def _signature(row: Replacement, place: _Place) -> str:
    return signature(place.found.endpoint if _is_route(row) else place.found)


def _problem(row: Replacement, place: _Place | str) -> str:
    """Describe a row that does not fit, and say what to do."""
    package = row.package
    return (
        f"{row.name} is not the part that Threadhold knows.\n"
        f"  needed by:   {', '.join(row.needed_by)}\n"
        f"  because:     {row.why}\n"
        f"  expected:    {row.signature}\n"
        f"  found:       {place if isinstance(place, str) else _signature(row, place)}\n"
        f"  tried with:  {package} {', '.join(row.tried)}\n"
        f"  installed:   {package} {_version(package)}\n"
        f"  what to do:  pip install {package}=={row.versions[0]}, or a release of Threadhold that "
        "knows the installed version. docs/how-to/upgrade.md says how its developers adopt one."
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
