"""A process that runs a scripted language server and then waits to be killed: the server's part in tests.

python -m tests.support.supervisor_parent ROOT '{"log": …}'
"""

import json
import sys
from pathlib import Path

import anyio

from tests.support.fakes import fake_server, running


async def main() -> None:
    async with running(fake_server(Path(sys.argv[1]), **json.loads(sys.argv[2]))):
        sys.stdout.write("running\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main)
