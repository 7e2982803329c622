"""`decima serve` and scheduler `remote`."""

import signal
import socket

import pytest

from tests.services import process, running, sessions_of
from tests.unit.commands.calls import read_json, refuse, run, succeed

SOME_PORT = ["--port", "0"]

UNEQUAL = ("simulate", "--system", "unequal", "--scheduler")


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
        (["--unequal", "fair"], "unknown scheduler 'fair'"),
        (["--unequal", "tds"], "scheduler 'tds' plans whole instances; expected one that takes node after node"),
        (["--unequal", "heft", "--unequal", "heft"], "scheduler 'heft' is given twice"),
        (["--unequal", "lachesis:policy=nobody"], "unknown policy 'nobody'"),
        (["--profiles", "nowhere.parquet"], "nowhere.parquet"),
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines: give a token"),
        (["--token-file", "nowhere"], "cannot read a token from nowhere: No such file or directory"),
        (["--tls-cert", "nowhere"], "TLS needs both --tls-cert and --tls-key"),
        (["--tls-cert", "nowhere", "--tls-key", "nowhere"], "are no certificate and its key: No such file"),
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
    schedulers = ["--scheduler", "fifo", "--also", "weighted_fair:alpha=-2", "--unequal", "heft"]
    with process(*schedulers, "--port", 0, "--metrics-port", 0) as service:
        assert service.line.startswith("serving fifo, weighted_fair:alpha=-2, heft at 127.0.0.1:")
        planned = "takes 80 s"
        assert planned in succeed(*UNEQUAL, f"remote:{service.target}", "--jobs", "canonical")
        refusal = refuse(*UNEQUAL, f"remote:{service.target},scheduler=cpop", "--jobs", "canonical")
        assert "scheduler 'cpop' is not offered for unequal executors here; offered: heft" in refusal
        call = ["simulate", "--jobs", jobs, "--scheduler"]
        succeed(*call, f"remote:{service.target}", "--out", folder / "there.json")
        succeed(*call, f"remote:service={service.target},scheduler=weighted_fair:alpha=-2")
        service.send_signal(signal.SIGTERM)
        stdout, stderr = service.communicate(timeout=60)
    assert service.returncode == 0
    assert stdout.startswith("stopped after ")
    assert stdout.count("\n") == 1
    assert stderr == ""
    succeed("simulate", "--jobs", jobs, "--scheduler", "fifo", "--out", folder / "here.json")
    mine, theirs = read_json(folder / "there.json"), read_json(folder / "here.json")
    assert mine["decisions"] == theirs["decisions"]
    assert mine["parameters"] == {"service": service.target, "scheduler": ""}


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no SIGHUP")
def test_a_closed_terminal_ends_it_as_a_stop_does():
    with process("--scheduler", "fifo", "--port", 0) as service:
        service.send_signal(signal.SIGHUP)
        stdout, _ = service.communicate(timeout=60)
    assert service.returncode == 0
    assert stdout.startswith("stopped after 0 decisions")


def test_wrong_use_of_remote(jobs):
    def simulate(text):
        return refuse("simulate", "--jobs", jobs, "--scheduler", text)

    assert "expected host:port" in refuse(*UNEQUAL, "remote:nowhere", "--jobs", "canonical")
    assert simulate("remote").startswith("scheduler 'remote' asks a service; expected remote:HOST:PORT")
    assert "expected host:port" in simulate("remote:127.0.0.1")
    assert "has no option 'x'; it has: service, scheduler" in simulate("remote:127.0.0.1:1,x=1")
    assert "cannot read the certificate nowhere" in simulate("remote:127.0.0.1:1,tls_ca=nowhere")
    with running(sessions_of("fifo")) as service:
        message = simulate(f"remote:{service.target},scheduler=fair")
        assert "scheduler 'fair' is not offered here; offered: fifo (INVALID_ARGUMENT)" in message
