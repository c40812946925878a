"""The process that parses: grammars are C code that holds Python's lock, and text can be made to keep it for minutes.

Run as `python -P -m serena_central.symbols.syntax.worker`. Reads requests from stdin and answers each on stdout, in
order, until stdin ends: a length (4 bytes, big-endian), then msgpack. Who waits too long kills it.
"""

import sys
from typing import BinaryIO

import msgspec

from serena_central.symbols.syntax.messages import Answer, Request, framed

MEMORY_BYTES = 2 << 30
"""Address space: a syntax tree takes 60 times its text at the worst."""


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    # Late: only this process loads the parser.
    from serena_central.symbols.syntax.damage import damage
    from serena_central.symbols.syntax.declarations import declared
    from serena_central.symbols.syntax.occurrences import occurrences
    from serena_central.symbols.syntax.outline import outline

    decoder = msgspec.msgpack.Decoder(Request)
    while header := requests.read(4):
        request = decoder.decode(requests.read(int.from_bytes(header)))
        try:
            if request.claimed is not None:
                answer = Answer(declared=declared(request.identifier, request.source, request.claimed))
            elif request.edit is not None:
                answer = Answer(damage=damage(request.identifier, request.source, request.edit))
            elif request.name:
                answer = Answer(occurrences=occurrences(request.identifier, request.source, request.name))
            else:
                symbols, cut = outline(request.identifier, request.source)
                answer = Answer(symbols, cut=cut)
        except Exception as error:  # noqa: BLE001 - the border of a request, which is answered and told there
            answer = Answer(error=f"{type(error).__name__}: {error}")
        answers.write(framed(answer))
        answers.flush()


def _limit_memory() -> None:
    if sys.platform != "win32":
        import resource  # late: there is no such module elsewhere

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


if __name__ == "__main__":
    _limit_memory()
    serve(sys.stdin.buffer, sys.stdout.buffer)
