"""The tables of the first stores."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    op.create_table(
        "windows",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("budget", sa.Integer, nullable=False),
        sa.Column("facts", sa.JSON, nullable=False),
        sa.Column("time", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("stream", sa.Integer, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("verb", sa.Text, nullable=False),
        sa.Column("about", sa.JSON, nullable=False),
        sa.Column("patch", sa.JSON, nullable=False),
        sa.Column("undoes", sa.Integer, nullable=True),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("time", sa.Text, nullable=False),
        sa.UniqueConstraint("stream", "seq"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("window", sa.Integer, nullable=True),
        sa.Column("about", sa.JSON, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("problem", sa.Text, nullable=True),
        sa.Column("result", sa.JSON, nullable=True),
        sa.Column("time", sa.Text, nullable=False),
    )
    op.create_table(
        "lessons",
        sa.Column("job", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("window", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("before", sa.Integer, nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("outcome", sa.JSON, nullable=False),
    )
    op.create_table(
        "facts",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.JSON, nullable=False),
    )
