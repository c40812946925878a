"""The worker process that parses: grammars are C code that holds the GIL, and text can make them keep it for minutes.

Run as `python -P -m serena_central.symbols.syntax.worker`. Reads batches of requests from stdin and answers each batch
on stdout, in order, until stdin ends. The reader kills it if it takes too long.
"""

import sys
from typing import BinaryIO

from serena_central.core.allocator import give_back
from serena_central.core.decoding import msgpack_decoder
from serena_central.symbols.syntax.messages import Answer, Packed, Request, framed, with_repetition

LARGE_BYTES = 2_000_000
"""Of a batch: what a text of 24 MB took is returned to the system, else a worker keeps 25 MB more for good."""


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    decoder = msgpack_decoder(list[Request])
    while header := requests.read(4):
        length = int.from_bytes(header)
        batch = with_repetition(decoder.decode(requests.read(length)))
        answers.write(framed([_answer(request) for request in batch]))
        answers.flush()
        if length > LARGE_BYTES:
            del batch
            give_back()


def _answer(request: Request) -> Answer:
    # Late: only this process loads the parser.
    from serena_central.symbols.syntax.damage import damage
    from serena_central.symbols.syntax.declarations import declared
    from serena_central.symbols.syntax.occurrences import occurrences
    from serena_central.symbols.syntax.outline import outline
    from serena_central.symbols.syntax.python_structure import structure

    try:
        if request.claimed is not None:
            return Answer(declared=declared(request.identifier, request.source, request.claimed))
        if request.edit is not None:
            return Answer(damage=damage(request.identifier, request.source, request.edit))
        if request.name:
            return Answer(occurrences=occurrences(request.identifier, request.source, request.name))
        if request.structure:
            return Answer(structure=structure(request.source))
        if request.packed:
            return Answer(packed=packed(request.identifier, request.source))
        symbols, cut = outline(request.identifier, request.source)
        return Answer(symbols, cut=cut)
    except Exception as error:  # noqa: BLE001 - the border of a request, which is answered and told there
        return Answer(error=f"{type(error).__name__}: {error}")


def packed(identifier: str, source: bytes) -> Packed:
    """The symbols of a text (valid UTF-8) as the index keeps them."""
    from serena_central.symbols.columns import compressed
    from serena_central.symbols.symbol import flatten
    from serena_central.symbols.syntax.outline import outline

    symbols, cut = outline(identifier, source, is_asked_again=False)
    file = flatten(symbols, cut=cut)
    return Packed(compressed(file), cut, file.lookup_names)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
