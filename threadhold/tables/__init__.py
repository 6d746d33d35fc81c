"""Tables: an application's own tables, in Threadhold's database.

Declare a table once, as a SQLAlchemy `Table` on the metadata of a `Tables`, with its `rules`. Its
migrations, transactions, row-level security, deletion with threads, export and erase of a tenant,
retention, and move to Postgres follow from that. A backup always has all tables.

    tables = Tables(Path(__file__).parent / "migrations", versions="shop_version")
    orders = Table(
        "shop_order",
        tables.metadata,
        Column("tenant_id", Text, primary_key=True),
        Column("order_id", Text, primary_key=True),
        Column("thread_id", Text),
        info=rules(thread="thread_id"),
    )

    found = await tables.run(lambda connection: connection.execute(select(orders)).all(), tenant)

Graphs import this module on any LangGraph server: it loads nothing of the platform. In a process of
Threadhold its transactions run on the platform's own threads and connections; elsewhere it opens the
database of `DATABASE_URL` at the first use.
"""

from threadhold.tables.columns import UtcDateTime
from threadhold.tables.declaration import Derived, Rules, rules
from threadhold.tables.engine import Engine
from threadhold.tables.row_security import secure
from threadhold.tables.tables import Tables, declared, lend
from threadhold.tables.transactions import SHARED, TablesError, Transactions, lock

__all__ = [
    "SHARED",
    "Derived",
    "Engine",
    "Rules",
    "Tables",
    "TablesError",
    "Transactions",
    "UtcDateTime",
    "declared",
    "lend",
    "lock",
    "rules",
    "secure",
]
