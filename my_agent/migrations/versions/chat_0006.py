"""Store the words of passages on Postgres in a table whose index row-level security lets it use."""

from alembic import op
from sqlalchemy import text

from my_agent.chat.documents import postgres_words

revision = "chat_0006"
down_revision = "chat_0005"


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    # Passages of all tenants are read here.
    connection.execute(text("SELECT set_config('threadhold.everything', 'on', true)"))
    postgres_words.create(connection)
