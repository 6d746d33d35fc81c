"""Row-level security of the graphs' tables: Postgres returns no rows of other tenants.

Each transaction sets its tenant (`ProductDatabase`), and the policies compare rows with it. They
also apply to the owner of the tables.
"""

from sqlalchemy import Connection

_EVERYTHING = "(SELECT current_setting('threadhold.everything', true)) = 'on'"
# Evaluated once per statement. Without a setting it is NULL, which matches no row.
_TENANT = "(SELECT nullif(current_setting('threadhold.tenant', true), ''))"
_STATEMENTS = (
    "ALTER TABLE {} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE {} FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY tenants ON {{}} USING ({_EVERYTHING} OR tenant_id = {_TENANT})",
    # Every tenant may read the shared rows.
    f"CREATE POLICY shared ON {{}} FOR SELECT USING (tenant_id = '' AND {_TENANT} IS NOT NULL)",
)


def secure(connection: Connection, *tables: str) -> None:
    """Create the policies of tables that have a column `tenant_id`. Does nothing on SQLite.

    Called by the migrations.
    """
    if connection.dialect.name != "postgresql":
        return
    for table in tables:
        for statement in _STATEMENTS:
            connection.exec_driver_sql(statement.format(table))
