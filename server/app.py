"""Host app of the example project: product routes around the platform."""

from starlette.applications import Starlette

from hooks.thread_settings import ThreadSettings
from my_agent import parsing
from server.project import check_graphs, has_our_identity
from server.routes import IDENTITY, POLICY, offered
from server.routes.endpoint import described
from server.settings import Settings
from threadhold import LangGraphPlatform, host
from threadhold.auth import platform_options
from threadhold.config_file import read_config


def create_app(settings: Settings, *, studio: bool = False) -> Starlette:
    """Make the app that `python -m server serve` runs.

    Args:
        settings: The server's settings.
        studio: Let LangGraph Studio reach the server from a browser.

    Returns:
        The app; its platform is `app.state.platform`.

    Raises:
        ConfigError: the project cannot be served.
        AuthenticationMissing: outside `local_dev`, without `auth` in the project
            or without a key for it.
        BadSetting: a setting of one of our graphs has an invalid value.
    """
    platform = create_platform(settings, studio=studio)
    check_graphs(platform.config.graphs)
    products = offered(platform.config.graphs)
    if has_our_identity(platform.config.sections["auth"]):
        products += IDENTITY
    platform.include(
        [*products, *POLICY],
        large=[(each, each.large()) for each in products if each.large is not None],
        openapi=described(products),
    )
    return host.host(platform, close=parsing.stop)


def create_platform(settings: Settings, *, studio: bool = False) -> LangGraphPlatform:
    """Make the platform of the settings. Raises the same errors as `create_app`."""
    project = read_config(settings.langgraph_json)
    ours = has_our_identity(project.sections["auth"])
    options = platform_options(settings) if ours else {}
    options["env"] = {**options.get("env", {}), **ThreadSettings.environment(settings)}
    return host.create_platform(settings, config=project, studio=studio, **options)
