"""Row-level security of an application's tables: Postgres returns no rows of other tenants.

Each transaction sets its tenant, and the policies compare rows with it. They also apply to the owner
of the tables.
"""

from sqlalchemy import Connection, text

_EVERYTHING = "(SELECT current_setting('threadhold.everything', true)) = 'on'"
# Evaluated once per statement. Without a setting it is NULL, which matches no row.
_TENANT = "(SELECT nullif(current_setting('threadhold.tenant', true), ''))"
_STATEMENTS = (
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY tenants ON {{table}} USING ({_EVERYTHING} OR {{tenant}} = {_TENANT})",
    # Every tenant may read the shared rows.
    f"CREATE POLICY shared ON {{table}} FOR SELECT USING ({{tenant}} = '' AND {_TENANT} IS NOT NULL)",
)
_OPEN = text(
    "SELECT relname FROM pg_class WHERE NOT relrowsecurity AND oid = to_regclass(quote_ident(:name))"
)


def secure(connection: Connection, *tables: str, tenant: str = "tenant_id") -> None:
    """Create the policies of tables that have none yet. Does nothing on SQLite.

    A migration does so by itself for all declared tables.

    Args:
        connection: The transaction that has changed the tables.
        tables: Their names. One that does not exist is left out.
        tenant: Their column with the tenant.
    """
    if connection.dialect.name != "postgresql":
        return
    quote = connection.dialect.identifier_preparer.quote
    for table in tables:
        if connection.scalar(_OPEN, {"name": table}) is None:
            continue
        for statement in _STATEMENTS:
            connection.exec_driver_sql(statement.format(table=quote(table), tenant=quote(tenant)))
