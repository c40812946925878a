"""The server's names from the settings: accepted host names, those that it proves, and the origins of its pages."""

from urllib.parse import SplitResult, urlsplit

from serena_central.config.settings import ServerSettings

_DEFAULT_PORTS = {"http": 80, "https": 443}


def own_names(settings: ServerSettings) -> list[str]:
    """Host names besides loopback that clients may use for this server."""
    names = [settings.central_server_host, *settings.central_server_names]
    if settings.central_server_url:
        names.append(_authority(urlsplit(settings.central_server_url)))
    return names


def proven_names(settings: ServerSettings) -> list[str]:
    """Those of its names that the server proves to be called by, each with its port: a name for all ports would be one
    for everybody who listens on this machine."""
    names = [name for name in settings.central_server_names if name.rpartition(":")[2].isdigit()]
    if settings.central_server_url:
        parts = urlsplit(settings.central_server_url)
        names.append(f"{parts.netloc.removesuffix(f':{parts.port}')}:{parts.port or _DEFAULT_PORTS[parts.scheme]}")
    return names


def own_origins(settings: ServerSettings) -> list[str]:
    """Of pages that a proxy in front of this server serves from it."""
    if not settings.central_server_url:
        return []
    parts = urlsplit(settings.central_server_url)
    return [f"{parts.scheme}://{_authority(parts)}"]


def _authority(parts: SplitResult) -> str:
    """Host and port of a URL as browsers say them: not the scheme's own port."""
    return parts.netloc.removesuffix(f":{_DEFAULT_PORTS[parts.scheme]}")
