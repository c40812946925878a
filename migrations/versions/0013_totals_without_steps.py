"""Calls are totalled apart from how long they took, and by the hour as well; totals of days take daily_total's place."""

import time
from calendar import timegm

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")

HOURS = "since - since % 3600"
SUMS = "sum(calls), sum(errors), sum(duration_ms), max(longest_ms), sum(answer_chars)"
INTO = "INSERT INTO new_call_total (span, project, tool, since, calls, errors, duration_ms, longest_ms, answer_chars)"


def upgrade() -> None:
    bind = op.get_bind()
    op.create_table("call_step",
        sa.Column("span", WHOLE, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("tool", TEXT, nullable=False),
        sa.Column("since", WHOLE, nullable=False),
        sa.Column("step", WHOLE, nullable=False),
        sa.Column("calls", WHOLE, nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("span", "project", "tool", "since", "step"),
        sqlite_with_rowid=False
    )
    totals = op.create_table("new_call_total",
        sa.Column("span", WHOLE, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("tool", TEXT, nullable=False),
        sa.Column("since", WHOLE, nullable=False),
        sa.Column("calls", WHOLE, nullable=False),
        sa.Column("errors", WHOLE, nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("longest_ms", sa.Float(), nullable=False),
        sa.Column("answer_chars", WHOLE, nullable=False),
        sa.PrimaryKeyConstraint("span", "project", "tool", "since"),
        sqlite_with_rowid=False
    )
    into = "INSERT INTO call_step (span, project, tool, since, step, calls, duration_ms)"
    op.execute(
        f"{into} SELECT span, project, tool, since, step, calls, duration_ms FROM call_total "
        "ORDER BY span, project, tool, since, step"
    )
    op.execute(
        f"{into} SELECT 3600, project, tool, {HOURS}, step, sum(calls), sum(duration_ms) FROM call_total "
        f"WHERE span = 900 GROUP BY project, tool, {HOURS}, step"
    )
    op.execute(f"{INTO} SELECT span, project, tool, since, {SUMS} FROM call_total GROUP BY span, project, tool, since")
    op.execute(
        f"{INTO} SELECT 3600, project, tool, {HOURS}, {SUMS} FROM call_total "
        f"WHERE span = 900 GROUP BY project, tool, {HOURS}"
    )
    # Days whose calls are gone.
    days = bind.execute(sa.text(
        "SELECT day, sum(calls), sum(errors), sum(duration_ms), sum(answer_chars) FROM daily_total GROUP BY day"
    ))
    known = {*bind.execute(sa.text(
        "SELECT since FROM new_call_total WHERE span = 86400 AND project = '' AND tool = ''"
    )).scalars()}
    rows = [
        {"span": 86400, "project": "", "tool": "", "since": timegm(time.strptime(day, "%Y-%m-%d")), "calls": int(calls),
         "errors": int(errors), "duration_ms": duration_ms, "longest_ms": 0.0, "answer_chars": int(chars)}
        for day, calls, errors, duration_ms, chars in days
    ]
    op.bulk_insert(totals, [row for row in rows if row["since"] not in known])
    op.drop_table("call_total")
    op.drop_table("daily_total")
    op.rename_table("new_call_total", "call_total")
