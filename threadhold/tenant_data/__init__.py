"""A tenant's data: export it, and erase it from every table."""

from threadhold.tenant_data.erase import Erased, erase, plan
from threadhold.tenant_data.errors import CannotErase, CannotExport, UnknownTenant
from threadhold.tenant_data.export import Exported, export
from threadhold.tenant_data.rules import RUNTIME, Rule, rules_of

__all__ = [
    "RUNTIME",
    "CannotErase",
    "CannotExport",
    "Erased",
    "Exported",
    "Rule",
    "UnknownTenant",
    "erase",
    "export",
    "plan",
    "rules_of",
]
