"""Settings of the ICP finder."""

from pydantic import Field

from my_agent.settings import EnvironmentSettings


class IcpSettings(EnvironmentSettings):
    """When what is known is too old, and how much is enriched; each field a variable."""

    profile_staleness_days: float = Field(
        default=14.0, ge=0, description="A company's profile is stale after so many days"
    )
    discovery_staleness_days: float = Field(
        default=14.0, ge=0, description="Candidates are stale after so many days"
    )
    icp_rule_name: str = Field(
        default="Default ICP",
        min_length=1,
        max_length=100,
        description="Rule of a thread that names neither a website nor a rule",
    )
    run_now_limit: int = Field(
        default=10, ge=1, le=100, description="Candidates that are enriched while the user waits"
    )
    run_later_limit: int = Field(
        default=40,
        ge=0,
        le=1000,
        description="Candidates after those that a background job enriches; 0 for no job",
    )
