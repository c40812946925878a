"""The page on connecting clients: by a command, or by an entry to copy. It holds no token."""

import os
import sys
from pathlib import Path

import msgspec

from serena_central.clients.client import Client, Machine, Proxy
from serena_central.clients.table import CLIENTS
from serena_central.core.places import HOME_VARIABLE, Places
from serena_central.web.pages.page import Page, Section, Visit

NAME = "serena"
"""Our entry's name in every client."""


class ClientCard(msgspec.Struct, frozen=True):
    """`entry` is a whole file with nothing but ours, in the client's own form; `then` is what a person does next."""

    title: str
    command: str
    file: str
    entry: str
    then: str


class Connect(msgspec.Struct, frozen=True):
    clients: list[ClientCard]


async def connect(visit: Visit) -> Connect:
    machine = Machine(Path.home(), sys.platform, os.environ)
    return Connect([_card(one, machine, visit.parts.places) for one in CLIENTS.values()])


def _card(client: Client, machine: Machine, places: Places) -> ClientCard:
    program = Path(sys.executable).with_name("serena-proxy")
    environment = {HOME_VARIABLE: str(places.home)} if os.environ.get(HOME_VARIABLE) else {}
    entry = client.stdio(Proxy("user", str(program), environment))
    return ClientCard(
        title=client.title,
        command=f"serena-central connect {client.name}",
        file=str(client.user_files(machine)[0]),
        entry=client.form.put("", (*client.servers, NAME), entry),
        then=client.then,
    )


PAGE = Page(
    path="/connect",
    title="Connect",
    template="connect.html",
    sections={"clients": Section("connect/_clients.html", connect)},
    live=False,
)
