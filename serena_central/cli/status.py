"""`serena-central status`: the server and each of its language servers."""

import click

from serena_central.cli.output import json_option, megabytes, print_json, print_table, span
from serena_central.cli.remote import Remote
from serena_central.core.words import counted


@click.command(epilog="Example: serena-central status --json | jq '.servers[].state'")
@json_option
def command(*, as_json: bool) -> None:
    """Show the server and each language server: state, process, memory, use."""
    remote = Remote()
    health = remote.get("/health")
    pool = remote.whole("/api/v1/servers", "servers")
    statistics = remote.get("/api/v1/stats")
    store, settings = statistics["store"], statistics["settings_not_in_force"]
    servers = pool["servers"]
    if as_json:
        policy = {**pool["policy"], "memory_budget_bytes": pool["memory_budget_bytes"]}
        told = {"servers": servers, "policy": policy, "store": store, "settings_not_in_force": settings}
        print_json({"url": remote.url, **health, **told})
        return
    click.echo(f"serena-central {health['version']} at {remote.url}, up {span(health['uptime_s'])}")
    rows = [
        [
            server["root"],
            ", ".join(server["languages"]),
            server["server"],
            server["state"],
            server["pid"] or "-",
            megabytes(server["memory_bytes"]),
            server["leases"],
            server["calls"],
            server["restarts"],
            span(server["idle_s"]),
            span(server["age_s"]),
        ]
        for server in servers
    ]
    headers = ["ROOT", "LANGUAGE", "SERVER", "STATE", "PID", "MEMORY", "LEASES", "CALLS", "RESTARTS", "IDLE", "AGE"]
    print_table(headers, rows, empty="No language server is running; the first request about code starts one.")
    policy = {key: value for key, value in pool["policy"].items() if value is not None}
    held = megabytes(sum(one["memory_bytes"] for one in servers))
    click.echo(f"Memory: {held} of the budget of {megabytes(pool['memory_budget_bytes'])}")
    click.echo(f"Policy: {', '.join(f'{key} {value:g}' for key, value in policy.items())}")
    if lost := sum(store["dropped"].values()):
        click.echo(f"Database: {counted(lost, 'row')} lost since the start")
    if store["problem"]:
        click.echo(f"Database: {store['problem']}")
    for sentence in settings:
        click.echo(f"Settings: {sentence}")
