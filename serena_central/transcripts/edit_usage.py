"""What edits of this server cost: each with the conversation that made it, its part of that request's cost, and whether
it was undone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from serena_central.store.edit_log import LoggedEdit, undoer_in_force
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.edit_calls import EditCall, calls_of_edits
from serena_central.transcripts.messages import prompt_before
from serena_central.transcripts.reports import UsageRow
from serena_central.transcripts.roots import Root

NO_SYMBOL = "(no symbol)"


class EditUsage(UsageRow, kw_only=True):
    """One edit; `key` is its id, `calls` is 1, and `failed` 1 where it is undone by `undone_by`. `client` and `session`
    are those of the conversation that made it, "" where no transcript tells, as `model` that of the request; `unpriced`
    is 1 where its cost is unknown. `prompt` is the first line of what was asked before it."""

    at: float
    tool: str
    root: str
    files: Sequence[str]
    symbol: str
    undone_by: str
    client: str = ""
    session: str = ""
    model: str = ""
    prompt: str = ""


def by_edit(
    store: UsageStore, roots: Sequence[Root], edits: Sequence[LoggedEdit], *, prompts: bool = False
) -> list[EditUsage]:
    """The edits in their order. Prompts are looked for only where they are wanted: it takes reading the transcripts.

    Raises:
        StoreError
    """
    tools = {one.id: one.tool for one in edits}
    since = min((one.at for one in edits), default=0.0)
    calls = {one.edit: one for one in calls_of_edits(store, roots, tools, since)}
    undone = _undone(edits)
    return [_usage(one, calls.get(one.id), undone.get(one.id, ""), prompts=prompts) for one in edits]


def by_symbol(edits: Sequence[EditUsage]) -> list[UsageRow]:
    """The same by symbol and file, the most expensive first; `calls` counts edits, `failed` those that are undone."""
    rows: dict[str, UsageRow] = {}
    for one in edits:
        file = one.files[0] if len(one.files) == 1 else f"{len(one.files)} files"
        key = f"{one.symbol or NO_SYMBOL}  {Path(one.root).name}/{file}"
        row = rows.setdefault(key, UsageRow(key=key, first_at=one.at, last_at=one.at))
        row.calls += one.calls
        row.failed += one.failed
        row.cost += one.cost
        row.unpriced += one.unpriced
        row.first_at, row.last_at = min(row.first_at, one.at), max(row.last_at, one.at)
    return sorted(rows.values(), key=lambda row: (-row.cost, -row.calls, row.key))


def total_of(edits: Sequence[UsageRow]) -> UsageRow:
    """The sum of rows of edits."""
    return UsageRow(
        key="total",
        calls=sum(one.calls for one in edits),
        failed=sum(one.failed for one in edits),
        cost=sum(one.cost for one in edits),
        unpriced=sum(one.unpriced for one in edits),
    )


def unknown_models(edits: Sequence[EditUsage]) -> dict[str, int]:
    """Models without known prices → edits whose requests were to them."""
    return dict(Counter(one.model for one in edits if one.unpriced and one.model))


def _usage(edit: LoggedEdit, call: EditCall | None, undone_by: str, *, prompts: bool) -> EditUsage:
    cost = call and call.use and call.use.cost
    return EditUsage(
        key=edit.id,
        at=edit.at,
        tool=edit.tool,
        root=edit.root,
        files=edit.files,
        symbol=edit.symbol,
        undone_by=undone_by,
        calls=1,
        failed=int(bool(undone_by)),
        cost=cost or 0.0,
        unpriced=int(cost is None),
        first_at=edit.at,
        last_at=edit.at,
        client=call.client if call else "",
        session=call.session if call else "",
        model=call.use.model if call and call.use else "",
        prompt=prompt_before(call.client, Path(call.file), call.call, call.session) if call and prompts else "",
    )


def _undone(edits: Sequence[LoggedEdit]) -> Mapping[str, str]:
    """Edit → the edit that has undone it, where that one is in force itself."""
    undoers: dict[str, list[str]] = {}
    for one in edits:
        if one.undoes:
            undoers.setdefault(one.undoes, []).append(one.id)
    return {edit: by for edit in undoers if (by := undoer_in_force(undoers, edit))}
