"""Token and TLS between the plugin and the service, in a real Spark."""

from __future__ import annotations

import shutil
import urllib.request

import pytest

from tests.services import make_certificate, process, until
from tests.spark.real_spark import OUTAGE, decisions_of, plugin_driver, slow_sum, start_queries

pytestmark = [
    pytest.mark.spark_slow,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl"),
]


@pytest.fixture
def secured(tmp_path):
    """Options of a service with TLS and a token, and the files."""
    files = {name: tmp_path / name for name in ("token", "other-token")}
    files["cert"], files["key"] = make_certificate(tmp_path, "own")
    files["token"].write_text("open-sesame-open-sesame\n")
    files["other-token"].write_text("swordfish-swordfish\n")
    options = ("--tls-cert", files["cert"], "--tls-key", files["key"], "--token-file", files["token"])
    return options, {name: str(path) for name, path in files.items()}


def metric(service, name):
    """A number of the service's page of metrics, None if it is not there yet."""
    with urllib.request.urlopen(service.line.split("metrics at ")[1].strip(), timeout=600) as page:
        lines = page.read().decode().splitlines()
    return next((float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{name} ")), None)


def test_token_and_tls(tmp_path, secured):
    options, files = secured
    conf = {"spark.decima.tls.ca": files["cert"], "spark.decima.token.file": files["token"]}
    # Calls in another session before the first decision.
    conf["spark.decima.rehearsals"] = "40"
    with (
        process("--port", 0, "--metrics-port", 0, "--scheduler", "fair", *options) as service,
        plugin_driver(tmp_path, service.target, conf=conf) as driver,
    ):
        until(lambda: metric(service, 'decima_decisions_total{outcome="stage",scheduler="fair"}') == 40)
        until(lambda: metric(service, "decima_sessions") <= 1)
        assert start_queries(driver, {"a": slow_sum(driver, 4, 0.0)}).wait() == {"a": 6}
        assert not driver.lines(OUTAGE)
    assert {line["job"] for line in decisions_of(tmp_path)} == {"a"}


def test_a_wrong_token_is_an_outage(tmp_path, secured):
    options, files = secured
    conf = {"spark.decima.tls.ca": files["cert"], "spark.decima.token.file": files["other-token"]}
    with (
        process("--port", 0, "--scheduler", "fair", *options) as service,
        plugin_driver(tmp_path, service.target, conf=conf) as driver,
    ):
        assert start_queries(driver, {"a": slow_sum(driver, 4, 0.0)}).wait() == {"a": 6}
        (line,) = driver.lines(OUTAGE)
        assert "UNAUTHENTICATED" in line
        assert not driver.lines("swordfish")
    assert decisions_of(tmp_path) == []
