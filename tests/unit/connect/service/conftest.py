import pytest

from tests.services import make_certificate, running, sessions_of


@pytest.fixture(scope="module")
def service():
    """A service with FIFO and fair, its metrics on a port of their own."""
    with running(sessions_of("fifo", "fair"), metrics_port=0) as service:
        yield service


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Files of a certificate for this machine and of its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"), "own")
