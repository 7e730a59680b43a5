"""TLS: a certificate from files, or one made for the occasion."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sdcduck.errors import SDCError


@dataclass(frozen=True)
class Certificate:
    """A certificate with its key, as PEM.

    Attributes:
        context: for doors that Python opens itself.
        chain: the certificate and those up to its issuer.
        fingerprint: SHA-256 of a certificate that was made now; empty: of others.
    """

    context: ssl.SSLContext
    chain: bytes
    key: bytes
    fingerprint: str = ""


def from_files(certificate: Path, key: Path | None) -> Certificate:
    """A certificate from files.

    Raises:
        SDCError: the files cannot be used.
    """
    context = _context()
    try:
        context.load_cert_chain(certificate, key)
        chain = certificate.read_bytes()
        made = Certificate(context, chain, chain if key is None else key.read_bytes())
    except (OSError, ssl.SSLError) as problem:
        reason = getattr(problem, "reason", None) or problem.strerror or "not a certificate with its key"
        raise SDCError(f"the certificate '{certificate}' cannot be used: {reason}") from None
    if why := _out_of_time(chain):
        raise SDCError(f"the certificate '{certificate}' cannot be used: {why}")
    return made


def renew(used: Certificate, certificate: Path, key: Path | None) -> None:
    """Show who connects from now on what the files hold now; who is connected already stays so.

    Raises:
        SDCError: the files cannot be used; nothing has changed then.
    """
    fresh = from_files(certificate, key).context

    # A context that has a certificate keeps it beside one whose key is of another kind, and may go on showing it.
    def show(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = fresh

    used.context.sni_callback = show


def issuer_from_file(path: Path) -> bytes:
    """The certificate of who issues those of clients, as PEM.

    Raises:
        SDCError: the file has none.
    """
    try:
        pem = path.read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=pem.decode("ascii"))
    except (OSError, ssl.SSLError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) if isinstance(problem, FileNotFoundError) else None
        raise SDCError(f"the certificate '{path}' cannot be used: {reason or 'not a certificate as PEM'}") from None
    return pem


def _out_of_time(chain: bytes) -> str:
    """Why a certificate is not good today: clients that check it would be refused, and others taught not to check.

    Without the package that reads certificates nobody looks; clients do.
    """
    try:
        from cryptography import x509
    except ModuleNotFoundError:
        return ""
    found, now = x509.load_pem_x509_certificate(chain), datetime.datetime.now(datetime.UTC)
    if now > found.not_valid_after_utc:
        return f"it has expired on {found.not_valid_after_utc:%Y-%m-%d}"
    if now < found.not_valid_before_utc:
        return f"it is not valid yet, but from {found.not_valid_before_utc:%Y-%m-%d} on"
    return ""


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def self_signed(host: str) -> Certificate:
    """A certificate that nobody vouches for.

    It keeps out who only listens; against who can change what is sent, clients must know the fingerprint, or you use a
    certificate of your own.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ModuleNotFoundError:
        raise SDCError(
            "TLS without --tls-cert needs the package 'cryptography': pip install 'sdcduck[gateway]'"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host or "sdcduck")])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    try:
        names.append(x509.IPAddress(ipaddress.ip_address(host)))
    except ValueError:
        names.append(x509.DNSName(host or "sdcduck"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    chain = certificate.public_bytes(serialization.Encoding.PEM)
    written = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(_loaded(chain + written), chain, written, certificate.fingerprint(hashes.SHA256()).hex(":"))


def _loaded(pem: bytes) -> ssl.SSLContext:
    """A context from text: Python takes files only, so one is there for a moment, for us alone."""
    context = _context()
    handle, path = tempfile.mkstemp()
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
    return context
