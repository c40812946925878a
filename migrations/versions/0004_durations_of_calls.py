"""Statistics of tools are kept by the quarter of an hour, so that a week of many calls is read at once."""

import math
from collections import defaultdict

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    durations = op.create_table("duration_total",
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("errors", sa.Integer(), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("longest_ms", sa.Float(), nullable=False),
        sa.Column("answer_chars", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("since", "tool", "step")
    )
    totals = defaultdict(lambda: [0, 0, 0.0, 0.0, 0])
    known = op.get_bind().execute(sa.text("SELECT at, tool, outcome, duration_ms, answer_chars FROM tool_call"))
    for at, tool, outcome, duration_ms, answer_chars in known:
        key = int(at // 900) * 900, tool, round(4 * math.log2(max(duration_ms, 0.001)))
        total = totals[key]
        total[0] += 1
        total[1] += outcome != "ok"
        total[2] += duration_ms
        total[3] = max(total[3], duration_ms)
        total[4] += answer_chars
    names = [column.name for column in durations.columns]
    op.bulk_insert(durations, [dict(zip(names, (*key, *total), strict=True)) for key, total in totals.items()])
