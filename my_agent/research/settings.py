"""Settings of the graph `research`."""

from pydantic import Field, field_validator

from my_agent.settings import EnvironmentSettings
from threadhold.addresses import Network


class ResearchSettings(EnvironmentSettings):
    """Budgets, times and bounds of a research project; each field is an environment variable."""

    research_search_seconds: float = Field(
        default=15.0, gt=0, le=600, description="Maximum time of one search, in seconds"
    )
    research_crawl_seconds: float = Field(
        default=30.0, gt=0, le=600, description="Maximum time to read one page, in seconds"
    )
    research_model_seconds: float = Field(
        default=120.0, gt=0, le=3600, description="Maximum time of one model call, in seconds"
    )
    research_agent_seconds: float = Field(
        default=300.0,
        gt=0,
        le=86_400,
        description="Maximum time of one worker with all its tasks, in seconds",
    )
    research_model_retries: int = Field(
        default=2, ge=0, le=5, description="Times the planner, analyzer or reporter is repeated"
    )
    research_fetch_retries: int = Field(
        default=1, ge=0, le=5, description="Times a search or a page is repeated"
    )
    research_stage_retries: int = Field(
        default=2,
        ge=0,
        le=3,
        description="Times a stage is repeated whose result fails the quality check; at most 3",
    )
    research_parallel: int = Field(
        default=5, ge=1, le=50, description="Maximum number of searches or pages at a time"
    )
    research_queries: int = Field(
        default=6, ge=1, le=50, description="Maximum number of queries of a plan"
    )
    research_pages: int = Field(
        default=24, ge=1, le=1000, description="Maximum number of pages that a project reads"
    )
    research_max_tokens: int = Field(
        default=200_000, ge=0, description="Budget of a project: tokens of the model"
    )
    research_max_model_calls: int = Field(
        default=30, ge=0, description="Budget of a project: model calls"
    )
    research_max_fetches: int = Field(
        default=120, ge=0, description="Budget of a project: searches and pages, with repetitions"
    )
    research_max_bytes: int = Field(
        default=50_000_000, ge=0, description="Budget of a project: bytes of pages"
    )
    research_max_seconds: float = Field(
        default=1200.0, gt=0, description="Budget of a project: seconds of work"
    )
    research_stage_share: float = Field(
        default=0.6,
        gt=0,
        le=1,
        description="Share of each budget that one stage may spend, from 0 to 1",
    )
    research_report_reserve: float = Field(
        default=0.2,
        ge=0,
        le=0.9,
        description="Share of tokens, model calls and seconds that only the report may spend",
    )
    research_heartbeat_seconds: float = Field(
        default=5.0, gt=0, le=60, description="Maximum time between two progress events, in seconds"
    )
    research_stop_seconds: float = Field(
        default=30.0,
        gt=0,
        le=600,
        description="Time after which a cancelled project that has not stopped is failed",
    )
    research_data_folder: str = Field(
        default="task-data",
        description="Folder of the state files and backups; `off`: none are written",
    )
    research_backups_kept: int = Field(
        default=10, ge=1, le=1000, description="Number of backups of a project that are kept"
    )
    research_web_search: bool = Field(default=True, description="Search the web")
    research_searxng_url: str = Field(
        default="",
        description="Address of a SearXNG server that searches the web and answers in JSON; "
        "empty: public engines",
    )
    research_corpus: bool = Field(
        default=True,
        description="Without other results, search the bundled pages about a made-up market",
    )
    research_feeds: tuple[str, ...] = Field(
        default=(), description="Addresses of RSS or Atom feeds to search, separated by commas"
    )
    research_feed_seconds: float = Field(
        default=60.0,
        ge=0,
        le=86_400,
        description="Time for which a feed is not asked for again, in seconds",
    )
    research_private_networks: tuple[Network, ...] = Field(
        default=(),
        description="Private networks whose pages may be read, such as `10.1.0.0/16`, "
        "separated by commas",
    )
    research_host_delay_seconds: float = Field(
        default=1.0, ge=0, le=60, description="Time between two requests to one host, in seconds"
    )

    @field_validator("research_feeds", "research_private_networks", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(each.strip() for each in value.split(",") if each.strip())
        return value
