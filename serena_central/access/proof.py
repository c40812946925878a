"""The server's side of its proof to clients: for which endpoint it speaks. The proof is `standalone/proof.py`."""

from collections.abc import Collection

from starlette.types import Scope

from serena_central.access.token import Token
from serena_central.standalone.proof import address_endpoint, name_endpoint


class Prover:
    """Proves that this server has the token. `names` are the `name:port`s by which its settings say it is called."""

    def __init__(self, token: Token, names: Collection[str]) -> None:
        self._token = token
        self._names = frozenset(name.lower() for name in names)

    def proof(self, scope: Scope, nonce: str) -> str:
        """The proof for the endpoint of this request, whose Host the access check has verified."""
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1").lower()
        endpoint = name_endpoint(host) if host in self._names else address_endpoint(scope["server"])
        return self._token.proof(nonce, endpoint)
