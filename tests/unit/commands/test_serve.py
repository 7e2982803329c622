"""`decima serve` and scheduler `remote`."""

import json
import os
import pty
import signal
import socket
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.services import process, running, sessions_of, unannounced
from tests.unit.commands.calls import read_json, refuse, run, succeed
from tests.unit.connect.service.test_server import require_works

SOME_PORT = ["--port", "0"]


@pytest.fixture
def busy_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_port_in_use(busy_port):
    assert refuse("serve", "--port", busy_port) == f"cannot listen at 127.0.0.1:{busy_port}: Address already in use"
    message = refuse("serve", *SOME_PORT, "--metrics-port", busy_port)
    assert message == f"cannot serve metrics at 127.0.0.1:{busy_port}: Address already in use"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scheduler", "fiar"], "unknown scheduler 'fiar'; did you mean 'fair'?"),
        (["--scheduler", "fair:x=1"], "scheduler fair has no parameter 'x'"),
        (["--also", "fair"], "scheduler 'fair' is given twice"),
        (["--scheduler", "decima:nobody"], "unknown policy 'nobody'"),
        (["--unequal", "heft"], "--unequal is gone: version 0.2.0 was the last with a service for"),
        (["--profiles", "nowhere.parquet"], "nowhere.parquet"),
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines: give a token"),
        (["--token-file", "nowhere"], "cannot read a token from nowhere: No such file or directory"),
        (["--tls-cert", "nowhere"], "TLS needs both --tls-cert and --tls-key"),
        (["--tls-cert", "nowhere", "--tls-key", "nowhere"], "are not a certificate and its key: No such file"),
        (["--host", "300.1.1.1"], "can be reached from other machines"),
        (["--host", "192.0.2.1", "--token-file", "token"], "cannot listen at 192.0.2.1:0"),
        (["--port", "70000"], "'--port': Input should be less than or equal to 65535"),
        (["--lease-s", "0"], "limit on lease_s must be above 0"),
        (["--first-lease-s", "nan"], "limit on first_lease_s must be above 0, got nan"),
        (["--max-memory-mb", "0"], "limit on total_bytes must be above 0"),
    ],
)
def test_bad_input(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DECIMA_SERVICE_TOKEN", raising=False)
    (tmp_path / "token").write_text("0123456789abcdef")
    assert message in refuse_with_warning(*SOME_PORT, *arguments)


def refuse_with_warning(*arguments):
    """As `refuse`; a line that the connection is not encrypted may come first."""
    result = run("serve", *arguments)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert lines[-1].startswith("error: ")
    assert all(line.startswith("warning: ") for line in lines[:-1])
    return lines[-1]


def test_serves_until_it_is_told_to_stop(jobs, folder):
    schedulers = ["--scheduler", "fifo", "--also", "weighted_fair:alpha=-2"]
    with process(*schedulers, "--port", 0, "--metrics-port", 0) as service:
        assert service.line.startswith("serving fifo, weighted_fair:alpha=-2 at 127.0.0.1:")
        call = ["simulate", "--jobs", jobs, "--scheduler"]
        succeed(*call, f"remote:{service.target}", "--out", folder / "there.json")
        succeed(*call, f"remote:service={service.target},scheduler=weighted_fair:alpha=-2")
        service.send_signal(signal.SIGTERM)
        stdout, stderr = service.communicate(timeout=600)
    assert service.returncode == 0
    assert stdout.startswith("stopped after ")
    assert stdout.count("\n") == 1
    assert unannounced(stderr) == ""
    succeed("simulate", "--jobs", jobs, "--scheduler", "fifo", "--out", folder / "here.json")
    mine, theirs = read_json(folder / "there.json"), read_json(folder / "here.json")
    assert mine["decisions"] == theirs["decisions"]
    assert mine["parameters"] == {"service": service.target, "scheduler": ""}


def test_a_closed_terminal_ends_it_as_a_stop_does():
    ours, terminal = pty.openpty()
    with process("--scheduler", "fifo", "--port", 0, stdin=terminal) as service:
        service.send_signal(signal.SIGHUP)
        stdout, _ = service.communicate(timeout=600)
    for end in (ours, terminal):
        os.close(end)
    assert service.returncode == 0
    assert stdout.startswith("stopped after 0 decisions")


def configuration(folder, **options):
    """A configuration file; lists and texts look the same in TOML and JSON."""
    file = folder / "decima.toml"
    file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in options.items()))
    return file


def test_a_file_gives_options_and_sighup_reads_again(folder, tmp_path):
    """Options of the file, the environment before it, the command line before both; a renewed token counts at once."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    options = {"scheduler": "fair", "also": ["fifo"], "port": 1, "metrics-port": 0, "live": True, "log_format": "json"}
    file = configuration(tmp_path, **options, token_file=str(token), **{"log-level": "info"})
    environment = {"DECIMA_SERVE_SCHEDULER": "sjf_cp", "DECIMA_SERVE_LOG_LEVEL": "debug"}
    with process("--config", file, "--port", 0, environment=environment) as service:
        assert service.line.startswith("serving sjf_cp, fifo at 127.0.0.1:")
        page = f"{service.line.split('metrics at ')[1].strip().removesuffix('/metrics')}/live.json"
        require_works(service.target, token="0123456789abcdef")
        token.write_text("fedcba9876543210")
        service.send_signal(signal.SIGHUP)
        log = [json.loads(service.stderr.readline())]
        while log[-1]["message"] != "policies, token and certificates were read again":
            log.append(json.loads(service.stderr.readline()))
        require_works(service.target, token="fedcba9876543210")
        token.write_text("short")
        service.send_signal(signal.SIGHUP)
        while log[-1]["message"] != "reload refused, everything stays as it was":
            log.append(json.loads(service.stderr.readline()))
        assert "must have at least 16" in log[-1]["reason"]
        require_works(service.target, token="fedcba9876543210")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(page, timeout=600)
        header = {"Authorization": "Bearer fedcba9876543210"}
        with urllib.request.urlopen(urllib.request.Request(page, headers=header), timeout=600) as answer:
            assert json.load(answer)["decisions"] == 3
    opened = next(line for line in log if line["message"] == "session opened")
    assert (opened["level"], opened["scheduler"], opened["executors"]) == ("info", "sjf_cp", 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ports = 1", "decima.toml: there is no option 'ports'; did you mean 'port'?"),
        ("port = 1\nport = 2", "decima.toml: Cannot overwrite a value"),
        ("max-sessions = 1\nmax_sessions = 2", "option 'max_sessions' is given twice"),
        ("port = 1.5", "'--port': Input should be a valid integer"),
        ("port = [1]", "option 'port' is [1]; expected one value"),
        ('also = "fifo"', "option 'also' is 'fifo'; expected a list"),
        ("port", "decima.toml: Expected '=' after a key"),
        ('log-level = "loud"', "--log-level is 'loud'; expected one of: debug, info, warning, error"),
        ("live = true", "--live is a page of the metrics port; expected --metrics-port too"),
        ('tls-client-ca = "ca.pem"', "--tls-client-ca needs TLS"),
        ('scheduler = "fiar"', "unknown scheduler 'fiar'; did you mean 'fair'?"),
        ("processes = 2", "--processes is gone: start replicas of the service"),
    ],
)
def test_configurations_that_are_wrong(text, message, tmp_path):
    (tmp_path / "decima.toml").write_text(text)
    assert message in refuse("serve", "--config", tmp_path / "decima.toml")


def test_no_configuration_and_unknown_variables(tmp_path, monkeypatch):
    assert refuse("serve", "--config", tmp_path / "none.toml").endswith("none.toml: No such file or directory")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    assert "cannot read the configuration" in refuse("serve", "--config", tmp_path / "bytes.toml")
    monkeypatch.setenv("DECIMA_SERVE_PROT", "1")
    assert refuse("serve") == "DECIMA_SERVE_PROT is set, but there is no option 'prot'; did you mean 'port'?"


@given(content=st.binary(max_size=60) | st.text("portalsive=[]{}\"\n12.,#'", max_size=60).map(str.encode))
@settings(max_examples=60, deadline=None)
def test_any_configuration_is_read_or_refused_with_a_sentence(content):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "decima.toml"
        file.write_bytes(content)
        # A wrong scheduler, so that no service begins where the file is right.
        assert refuse("serve", "--scheduler", "fiar", "--config", file)


def test_wrong_use_of_remote(jobs):
    def simulate(text):
        return refuse("simulate", "--jobs", jobs, "--scheduler", text)

    assert simulate("remote").startswith("scheduler 'remote' asks a service; expected remote:HOST:PORT")
    assert "expected host:port" in simulate("remote:127.0.0.1")
    assert "has no option 'x'; it has: service, scheduler" in simulate("remote:127.0.0.1:1,x=1")
    assert "cannot read the certificate nowhere" in simulate("remote:127.0.0.1:1,tls_ca=nowhere")
    with running(sessions_of("fifo")) as service:
        message = simulate(f"remote:{service.target},scheduler=fair")
        assert "scheduler 'fair' is not offered here; offered: fifo (INVALID_ARGUMENT)" in message
