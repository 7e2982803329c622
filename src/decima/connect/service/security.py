"""Access to the service: token, certificate, and where neither is needed."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from decima.core.errors import ServiceError

TOKEN_VARIABLE = "DECIMA_SERVICE_TOKEN"
_SHORTEST = 16


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(file: Path | None) -> str | None:
    """Read the token from a file, else from the environment; None if there is neither.

    Raises:
        ServiceError: The file cannot be read, or the token is too short or no plain text.
    """
    if file is not None:
        try:
            token = file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise ServiceError(f"cannot read a token from {file}: {why}") from error
        where = str(file)
    elif TOKEN_VARIABLE in os.environ:
        token, where = os.environ[TOKEN_VARIABLE].strip(), TOKEN_VARIABLE
    else:
        return None
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ServiceError(f"the token in {where} must have at least {_SHORTEST} ASCII characters, no spaces")
    return token


@dataclass(frozen=True)
class Security:
    """Token and certificate of a service."""

    token: str | None = field(default=None, repr=False)  # what clients must show, None: nothing
    certificate: Path | None = None  # PEM file with the certificate chain, None: no TLS
    key: Path | None = None  # PEM file with its key
    client_ca: Path | None = None  # PEM file; clients must show a certificate that it signed, None: none

    def check(self, host: str) -> None:
        """Check that the service would not be open to strangers.

        Raises:
            ServiceError: The address can be reached from elsewhere and no token is asked for, or only one of
                certificate and key is there.
        """
        if self.token is None and not is_loopback(host):
            raise ServiceError(
                f"{host} can be reached from other machines: give a token (--token-file or {TOKEN_VARIABLE})"
            )
        if (self.certificate is None) != (self.key is None):
            raise ServiceError("TLS needs both --tls-cert and --tls-key")
        if self.client_ca is not None and self.certificate is None:
            raise ServiceError("--tls-client-ca needs TLS: --tls-cert and --tls-key")

    def certificates(self) -> grpc.ServerCertificateConfiguration | None:
        """Certificates of the port, read from their files now; None without TLS.

        Raises:
            ServiceError: The files are not a certificate and its key, or not a certificate of clients.
        """
        if self.certificate is None:
            return None
        context, what = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
            f"{self.certificate} and {self.key} are not a certificate",
        )
        try:
            # gRPC would say nothing of a wrong file until a client comes.
            context.load_cert_chain(self.certificate, self.key)
            pair = (self.key.read_bytes(), self.certificate.read_bytes())
            ca = None
            if self.client_ca is not None:
                what = f"{self.client_ca} has no certificate"
                context.load_verify_locations(self.client_ca)
                ca = self.client_ca.read_bytes()
        except (OSError, ssl.SSLError) as error:
            whose = " that signs those of clients" if "has no" in what else " and its key"
            raise ServiceError(f"{what}{whose}: {error.strerror or error}") from error
        return grpc.ssl_server_certificate_configuration([pair], ca)

    def admits(self, metadata) -> bool:
        """Whether the metadata of a call show the token."""
        return self._shown(next((value for key, value in metadata or () if key == "authorization"), ""))

    def admits_reader(self, authorization: str) -> bool:
        """Whether a header of HTTP shows the token, as it is or as a password."""
        scheme, _, rest = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                authorization = "Bearer " + base64.b64decode(rest, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return self.token is None
        return self._shown(authorization)

    def _shown(self, authorization: object) -> bool:
        if self.token is None:
            return True
        return hmac.compare_digest(str(authorization).encode(), f"Bearer {self.token}".encode())
