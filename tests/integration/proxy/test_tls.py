"""A server behind TLS: trusted by the system's rules or by a file that the user names, and nobody else."""

import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.child import Child
from tests.support.intermediary import fronting
from tests.support.mcp import Era, text_of
from tests.support.proxy import proxying

pytestmark = pytest.mark.anyio

ERAS: list[Era] = ["handshake", "modern"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that has signed itself, with its key behind it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a box of ours")])
    today = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "box.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return file


def context_of(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.parametrize("era", ERAS)
async def test_a_certificate_of_ones_own_is_trusted_when_its_file_is_named(
    serving: Child, certificate: Path, tmp_path: Path, era: Era
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "large.txt").write_text("x" * 2_000_000)
    async with (
        fronting(serving.url, context=context_of(certificate)) as front,
        proxying(serving.folder, era, "--url", front.url, SSL_CERT_FILE=str(certificate)) as client,
    ):
        await client.open()
        assert (await client.session()).startswith("proxy-")
        arguments = {"relative_path": "large.txt", "project": str(tmp_path), "max_answer_chars": 3_000_000}
        assert "x" * 2_000_000 in text_of(await client.call("read_file", **arguments))


async def test_a_certificate_that_nobody_vouches_for_is_refused_at_once_and_the_way_out_is_told(
    serving: Child, certificate: Path
) -> None:
    async with (
        fronting(serving.url, context=context_of(certificate)) as front,
        proxying(serving.folder, "modern", "--url", front.url) as client,
    ):
        message = (await client.ask("tools/list"))["error"]["message"]
        assert "self-signed certificate" in message, message
        assert "SSL_CERT_FILE" in message
        assert not front.seen


async def test_a_server_without_tls_is_told_to_be_none(serving: Child) -> None:
    secure = serving.url.replace("http://", "https://")
    async with proxying(serving.folder, "modern", "--url", f"{secure}/mcp") as client:
        message = (await client.ask("tools/list"))["error"]["message"]
        assert "http://" in message
