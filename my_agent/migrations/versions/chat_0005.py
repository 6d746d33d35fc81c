"""Store the words of passages on Postgres in a table whose index row-level security lets it use."""

from alembic import op
from sqlalchemy import text

from my_agent.chat.documents import keywords

revision = "chat_0005"
down_revision = "chat_0004"


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    # Passages of all tenants are read here.
    connection.execute(text("SELECT set_config('threadhold.everything', 'on', true)"))
    keywords.create_words(connection)
