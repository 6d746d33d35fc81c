"""Row-level security of the graphs' tables: the database answers nothing across tenants.

Each transaction says whose it is (`ProductDatabase`), and that is what these policies compare
with. They hold for the owner of the tables, too.
"""

from sqlalchemy import Connection

_EVERYTHING = "(SELECT current_setting('threadhold.everything', true)) = 'on'"
# Read once a statement; where nothing was said it is nobody.
_TENANT = "(SELECT nullif(current_setting('threadhold.tenant', true), ''))"
_STATEMENTS = (
    "ALTER TABLE {} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE {} FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY tenants ON {{}} USING ({_EVERYTHING} OR tenant_id = {_TENANT})",
    # What is shared is for every tenant to read.
    f"CREATE POLICY shared ON {{}} FOR SELECT USING (tenant_id = '' AND {_TENANT} IS NOT NULL)",
)


def secure(connection: Connection, *tables: str) -> None:
    """Give tables with a column `tenant_id` their policies, on Postgres; for their migration."""
    if connection.dialect.name != "postgresql":
        return
    for table in tables:
        for statement in _STATEMENTS:
            connection.exec_driver_sql(statement.format(table))
