"""Calls and memory are totalled by the minute, the quarter of an hour and the quarter of a day, by tool and project."""

import itertools
import math
import time
from collections import defaultdict

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    totals = op.create_table("call_total",
        sa.Column("span", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("errors", sa.Integer(), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("longest_ms", sa.Float(), nullable=False),
        sa.Column("answer_chars", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("span", "project", "since", "tool", "step")
    )
    op.create_table("memory_total",
        sa.Column("span", sa.Integer(), nullable=False),
        sa.Column("root", sa.String(), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("memory_bytes", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("span", "root", "since")
    )
    known = op.get_bind().execute(
        sa.text("SELECT at, project, tool, outcome, duration_ms, answer_chars FROM tool_call")
    )
    names = [column.name for column in totals.columns]
    rows = [dict(zip(names, (*key, *total), strict=True)) for key, total in _totals(known).items()]
    for start in range(0, len(rows), 10_000):
        op.bulk_insert(totals, rows[start : start + 10_000])
    op.drop_table("duration_total")


def _totals(known):
    found = defaultdict(lambda: [0, 0, 0.0, 0.0, 0])
    minutes_since = time.time() - 2 * 86_400
    for at, project, tool, outcome, duration_ms, answer_chars in known:
        step = round(4 * math.log2(max(duration_ms, 0.001)))
        spans = (60, 900, 21_600) if at >= minutes_since else (900, 21_600)
        for span, in_project, of_tool in itertools.product(spans, {project or "", ""}, {tool, ""}):
            total = found[span, in_project, int(at // span) * span, of_tool, step]
            total[0] += 1
            total[1] += outcome != "ok"
            total[2] += duration_ms
            total[3] = max(total[3], duration_ms)
            total[4] += answer_chars
    return found
