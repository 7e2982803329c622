"""The service over the network: status codes, health, metrics, token, TLS, sizes."""

import asyncio
import base64
import contextlib
import json
import platform
import queue
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import decima
from decima.connect.service import scheduler_pb2
from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.client import ClientSession, ServiceClient
from decima.connect.service.limits import Limits
from decima.connect.service.security import Security, is_loopback, read_token
from decima.connect.service.server import Address, Plan
from decima.connect.service.wire import NAME
from decima.core.errors import ServiceError
from tests.services import make_certificate, running, sessions_of, until
from tests.unit.test_package import modules_after

TOKEN = "0123456789abcdef"


def open_request(**fields):
    return protocol.OpenRequest(**({"version": 1, "executors": 4} | fields))


def full_request(_=True):
    request = protocol.DecideRequest(executors=4, offer=protocol.Offer(executors=3))
    request.jobs.add(job="j", stages=[protocol.Stage(stage=0, num_tasks=2)])
    request.states.add(job="j", runnable=[0], schedulable=[0])
    return request


def report_of(session, sequence, full=True, **fields):
    request = full_request()
    request.session, request.sequence, request.full = session, sequence, full
    if not full:
        request.ClearField("jobs")
        request.ClearField("states")
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def report_without_executors(session):
    """A driver's first report: a stage of nine tasks, and nothing to offer."""
    request = report_of(session, 1, executors=0)
    request.jobs[0].stages[0].num_tasks = 9
    request.ClearField("offer")
    return request


def require_works(target, **options):
    """Open, ask, close."""
    with ServiceClient(target, **options) as client:
        session = ClientSession(client, open_request())
        reply = session.decide(full_request)
        assert (reply.job, reply.executors) == ("j", 2)
        session.close()


def ask_in_vain(target, message, **options):
    """Open and ask, which the service or the connection refuses."""
    with ServiceClient(target, **options) as client, pytest.raises(ServiceError, match=message):
        ClientSession(client, open_request(), patience_s=0.3).decide(full_request)


def code_of(call, *arguments, **fields):
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, **fields)
    return caught.value.code()


def raw(target, method, data, **options):
    """Send bytes that need not be a message."""
    with grpc.insecure_channel(target) as channel:
        return channel.unary_unary(f"/{NAME}/{method}")(data, timeout=600, **options)


def ask(channel, method, request, reply):
    """The reply to a call."""
    return reply.FromString(channel.unary_unary(f"/{NAME}/{method}")(request.SerializeToString(), timeout=600))


def watching(channel, session):
    """The commands of a driver's stream."""
    request = protocol.WatchRequest(session=session).SerializeToString()
    return map(protocol.Command.FromString, channel.unary_stream(f"/{NAME}/Watch")(request, timeout=600))


def health(target):
    with grpc.insecure_channel(target) as channel:
        request = health_pb2.HealthCheckRequest(service=NAME)
        return health_pb2_grpc.HealthStub(channel).Check(request, timeout=600).status


def test_client_without_the_schema_reads_it(service):
    with grpc.insecure_channel(service.target) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert {NAME, "grpc.health.v1.Health"} <= set(database.get_services())
        methods = DescriptorPool(database).FindServiceByName(NAME).methods_by_name
    assert {"Decide", "Decisions"} <= set(methods)


def test_health(service):
    assert health(service.target) == health_pb2.HealthCheckResponse.SERVING


def test_metrics(service):
    require_works(service.target)
    assert code_of(raw, service.target, "Decide", b"\xff") is grpc.StatusCode.INVALID_ARGUMENT
    lines = page(service.metrics_port, "/metrics")[1].splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values['decima_decisions_total{outcome="stage",scheduler="fifo"}']) >= 1
    assert float(values['decima_calls_total{code="INVALID_ARGUMENT",method="Decide"}']) >= 1
    assert float(values['decima_decision_seconds_count{scheduler="fifo"}']) >= 1
    assert float(values["decima_sessions"]) == len(service.sessions)
    assert float(values["decima_active_jobs"]) == 0


def test_wrong_calls(service):
    target = service.target
    unknown = protocol.DecideRequest(session="nothing", sequence=1).SerializeToString()
    assert code_of(raw, target, "Decide", unknown) is grpc.StatusCode.NOT_FOUND
    assert code_of(raw, target, "Open", b"\x08\x07") is grpc.StatusCode.INVALID_ARGUMENT
    assert code_of(raw, target, "Guess", b"") is grpc.StatusCode.UNIMPLEMENTED
    assert raw(target, "Close", protocol.CloseRequest(session="nothing").SerializeToString()) == b""
    require_works(target)


def test_oversized_message(service):
    large = protocol.DecideRequest(session="x" * (5 * 1024 * 1024)).SerializeToString()
    assert code_of(raw, service.target, "Decide", large) is grpc.StatusCode.RESOURCE_EXHAUSTED
    require_works(service.target)


def test_sessions_expire_by_themselves():
    with running(sessions_of("fifo", limits=Limits(lease_s=0.2))) as service, ServiceClient(service.target) as client:
        session = ClientSession(client, open_request())
        session.decide(full_request)
        while len(service.sessions):
            service.loop.call_soon_threadsafe(lambda: None)
        # The client opens another one and tells everything.
        assert session.decide(full_request).job == "j"
        assert session.times_opened == 2


def test_token():
    with running(sessions_of("fifo"), security=Security(TOKEN)) as service:
        require_works(service.target, token=TOKEN)
        request = open_request().SerializeToString()
        for metadata in ((), [("authorization", TOKEN)], [("authorization", f"Bearer {TOKEN}x")]):
            for method in ("Open", "Decide", "Close"):
                code = code_of(raw, service.target, method, request, metadata=metadata)
                assert code is grpc.StatusCode.UNAUTHENTICATED
        assert len(service.sessions) == 0
        ask_in_vain(service.target, r"the token is missing or wrong \(UNAUTHENTICATED\)", token="wrong")
        assert health(service.target) == health_pb2.HealthCheckResponse.SERVING


def test_tls(certificate, tmp_path):
    cert, key = certificate
    with running(sessions_of("fifo"), security=Security(TOKEN, cert, key)) as service:
        require_works(service.target, token=TOKEN, tls_ca=cert)
        for wrong in ({}, {"tls_ca": make_certificate(tmp_path, "other")[0]}):
            ask_in_vain(service.target, "does not answer", token=TOKEN, **wrong)
        require_works(service.target, token=TOKEN, tls_ca=cert)


def test_clients_with_a_certificate_of_their_own(certificate, tmp_path):
    """The authority of the clients signs one certificate; another one, or none, opens no connection."""
    cert, key = certificate
    own, other = (make_certificate(tmp_path, name) for name in ("client", "stranger"))
    with running(sessions_of("fifo"), security=Security(TOKEN, cert, key, client_ca=own[0])) as service:
        require_works(service.target, token=TOKEN, tls_ca=cert, identity=own)
        for wrong in (None, other):
            ask_in_vain(service.target, "does not answer", token=TOKEN, tls_ca=cert, identity=wrong)
    with pytest.raises(
        ServiceError, match=r"nowhere\.pem has no certificate that signs those of clients: No such file"
    ):
        Security(TOKEN, cert, key, client_ca=tmp_path / "nowhere.pem").certificates()


def test_a_renewed_certificate_is_shown_to_the_next_client(tmp_path):
    """The first client's connection goes on; certificate and key that do not match change nothing."""
    cert, key = make_certificate(tmp_path, "service")
    first = tmp_path / "first.pem"
    first.write_bytes(cert.read_bytes())
    plan = Plan(("fifo",), address=Address(port=0, security=Security(TOKEN, cert, key)), token_file=tmp_path / "token")
    (tmp_path / "token").write_text(TOKEN)
    with running(None, made=plan.service()) as service:
        with ServiceClient(service.target, token=TOKEN, tls_ca=first) as early:
            session = ClientSession(early, open_request())
            session.decide(full_request)
            make_certificate(tmp_path, "service")
            asyncio.run_coroutine_threadsafe(service.renew(), service.loop).result(60)
            assert session.decide(lambda _: protocol.DecideRequest(executors=4)).idle
            require_works(service.target, token=TOKEN, tls_ca=cert)
            key.write_bytes(make_certificate(tmp_path, "other")[1].read_bytes())
            asyncio.run_coroutine_threadsafe(service.renew(), service.loop).result(60)
            require_works(service.target, token=TOKEN, tls_ca=cert)
        assert service.metrics.registry.get_sample_value("decima_reloads_total", {"outcome": "done"}) == 1
        assert service.metrics.registry.get_sample_value("decima_reloads_total", {"outcome": "refused"}) == 1


def test_refusals_and_lost_sessions_are_logged(caplog):
    caplog.set_level("INFO", "decima.connect.service")
    limits = Limits(lease_s=0.3)
    with running(sessions_of("fifo", limits=limits), security=Security(TOKEN)) as service:
        assert code_of(raw, service.target, "Open", b"") is grpc.StatusCode.UNAUTHENTICATED
        with ServiceClient(service.target, token=TOKEN) as client:
            ClientSession(client, open_request(client="notebook")).decide(full_request)
            while len(service.sessions):
                time.sleep(0.05)
    events = {record.getMessage(): record for record in caplog.records}
    assert events["refused"].levelname == "WARNING"
    assert "token" in str(events["refused"].named["reason"])
    assert events["session lost"].named["client"] == "notebook"
    assert events["session lost"].named["reason"] == "no call for 0.3 s"


def page(port, path, **headers):
    """Status and text of a page."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_probes_and_the_live_page_behind_the_token(service):
    port = service.metrics_port
    assert page(port, "/healthz") == (200, "alive\n")
    assert page(port, "/readyz") == (200, "ready\n")
    assert [page(port, path)[0] for path in ("/live", "/live.json", "/metric", "/..")] == [404] * 4  # off by default
    lines = page(port, "/metrics")[1].splitlines()
    assert any(line.startswith("process_resident_memory_bytes") for line in lines)
    assert f'decima_build_info{{python="{platform.python_version()}",version="{decima.__version__}"}} 1.0' in lines
    sessions = sessions_of("fifo")
    with running(sessions, metrics_port=0, live=True, security=Security(TOKEN)) as other:
        basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
        for wrong in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic !"}, {"Authorization": TOKEN}):
            assert page(other.metrics_port, "/live", **wrong)[0] == 401
            assert page(other.metrics_port, "/live.json", **wrong)[0] == 401
        assert "What the service does" in page(other.metrics_port, "/live", Authorization=f"Basic {basic}")[1]
        with ServiceClient(other.target, token=TOKEN) as client:
            session = ClientSession(client, open_request(client="me"))
            session.decide(full_request)
            told = json.loads(page(other.metrics_port, "/live.json", Authorization=f"Bearer {TOKEN}")[1])
        (shown,) = told["open"]
        assert (shown["client"], shown["scheduler"], shown["executors"]) == ("me", "fifo", 4)
        assert shown["jobs"] == [{"job": "j", "stages": 1, "finished": 0, "executors": 0, "coming": 0, "waiting": [0]}]
        assert (told["last"][-1]["outcome"], told["last"][-1]["executors"]) == ("stage", 2)
        assert not any(len(each["session"]) > 6 for each in told["open"])  # no key to a session


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.1.2.3", "example.org")),
    ],
)
def test_loopback(host, expected):
    assert is_loopback(host) is expected
    if not expected:
        with pytest.raises(ServiceError, match="can be reached from other machines: give a token"):
            Security().check(host)
    Security(TOKEN).check(host)


def test_tokens_are_read(tmp_path, monkeypatch):
    monkeypatch.delenv("DECIMA_SERVICE_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("DECIMA_SERVICE_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}-file\n")
    assert read_token(path) == f"{TOKEN}-file"
    for content in ("short", "with a space in it", "späte zeichen sind nicht ascii"):
        path.write_text(content)
        with pytest.raises(ServiceError):
            read_token(path)
    assert TOKEN not in repr(Security(TOKEN))


def test_commands_are_streamed_to_drivers():
    """The stream is the driver's life: when it breaks, its executors go to others, at once and not after its lease."""
    with running(sessions_of("fifo", limits=Limits(driver_lease_s=900.0))) as service:
        channels = [grpc.insecure_channel(service.target, [("n", n)]) for n in range(2)]
        opening = open_request(shared_cluster="c")
        sessions = [ask(channel, "Open", opening, protocol.OpenReply).session for channel in channels]
        streams = list(map(watching, channels, sessions))
        assert [next(stream).target for stream in streams] == [0, 0]
        assert code_of(next, watching(channels[0], sessions[0])) is grpc.StatusCode.INVALID_ARGUMENT
        for channel, session in zip(channels, sessions, strict=True):
            ask(channel, "Decide", report_without_executors(session), protocol.Decision)
        assert next(streams[0]).target == 4
        channels[0].close()
        assert next(streams[1]).target == 4
        assert len(service.sessions) == 1
        channels[1].close()


class Stream:
    """Decisions over one stream."""

    def __init__(self, channel, **options):
        self._messages = queue.SimpleQueue()
        self.call = channel.stream_stream(f"/{NAME}/Decisions")(iter(self._messages.get, None), **options)

    def ask(self, request):
        self._messages.put(request.SerializeToString())
        return protocol.Decision.FromString(next(self.call))

    def end(self):
        self._messages.put(None)


def asked_once(channel):
    """A stream over which a session of its own has asked."""
    stream = Stream(channel)
    stream.ask(report_of(ask(channel, "Open", open_request(), protocol.OpenReply).session, 1))
    return stream


def test_decisions_over_a_stream(service):
    """A refusal ends the stream with its status; the session goes on with a report of everything in another one."""
    with grpc.insecure_channel(service.target) as channel:
        session, stream = ask(channel, "Open", open_request(), protocol.OpenReply).session, Stream(channel)
        first = stream.ask(report_of(session, 1))
        assert (first.sequence, first.job, first.executors) == (1, "j", 2)
        assert stream.ask(report_of(session, 2, full=False)).sequence == 2
        assert code_of(stream.ask, report_of(session, 9, full=False)) is grpc.StatusCode.FAILED_PRECONDITION
        again = Stream(channel)
        assert again.ask(report_of(session, 9)).job == "j"
        again.end()
        assert next(again.call, None) is None
        assert again.call.code() is grpc.StatusCode.OK
        ask(channel, "Close", protocol.CloseRequest(session=session), protocol.CloseReply)


def test_a_stream_that_is_garbage(service):
    with grpc.insecure_channel(service.target) as channel:
        call = channel.stream_stream(f"/{NAME}/Decisions")(iter([b"\xff"]))
        assert code_of(lambda: next(call)) is grpc.StatusCode.INVALID_ARGUMENT
    require_works(service.target)


def test_a_stream_shows_its_token():
    secured = running(sessions_of("fifo"), security=Security(TOKEN))
    with secured as service, grpc.insecure_channel(service.target) as channel:
        stream = Stream(channel)
        assert code_of(stream.ask, report_of("s", 1)) is grpc.StatusCode.UNAUTHENTICATED
        stream = Stream(channel, metadata=[("authorization", f"Bearer {TOKEN}")])
        assert code_of(stream.ask, report_of("s", 1)) is grpc.StatusCode.NOT_FOUND


def test_a_silent_stream_does_not_keep_the_service_from_ending():
    with contextlib.ExitStack() as stack:
        with running(sessions_of("fifo"), grace_s=60.0) as service:
            channel = stack.enter_context(grpc.insecure_channel(service.target))
            stream = asked_once(channel)
            begin = time.monotonic()
        assert time.monotonic() - begin < 30
        assert code_of(lambda: next(stream.call)) is grpc.StatusCode.UNAVAILABLE


def test_a_client_that_is_gone_leaves_no_stream(service):
    channel = grpc.insecure_channel(service.target)
    _stream = asked_once(channel)
    until(lambda: len(service._silent) == 1, 20.0)
    channel.close()
    until(lambda: not service._silent, 20.0)
    require_works(service.target)


def test_watching_is_for_drivers(service):
    with grpc.insecure_channel(service.target) as channel:
        session = ask(channel, "Open", open_request(), protocol.OpenReply).session
        assert code_of(next, watching(channel, session)) is grpc.StatusCode.INVALID_ARGUMENT
        assert code_of(next, watching(channel, "nothing")) is grpc.StatusCode.NOT_FOUND
        ask(channel, "Close", protocol.CloseRequest(session=session), protocol.CloseReply)


# The committed protocol and the code generated from it belong together.


def test_generated_code_is_current(tmp_path):
    committed = Path(scheduler_pb2.__file__).parent
    # In a process of its own: the compiler and TensorFlow, each with a protobuf of its own, crash in one.
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{committed.parents[1]}", committed / "scheduler.proto"]
    subprocess.run([*command, f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"], check=True)
    made = sorted(tmp_path.rglob("*.py*"))
    assert [path.name for path in made] == ["scheduler_pb2.py", "scheduler_pb2.pyi"]
    for path in made:
        assert (committed / path.name).read_text() == f"# ruff: noqa\n{path.read_text()}", "run make protocol"


def test_java_client_finds_its_package():
    options = scheduler_pb2.DESCRIPTOR.GetOptions()
    assert options.java_package == "org.decima.spark.protocol"
    assert options.java_multiple_files


def test_protocol_needs_no_other_files():
    """Spark's own shaded copy of protobuf knows none."""
    assert list(scheduler_pb2.DESCRIPTOR.dependencies) == []


@pytest.mark.parametrize(
    "statement", ["import decima; decima.simulate", "import decima; decima.list_schedulers()", "import decima.app"]
)
def test_grpc_is_loaded_by_those_who_use_it(statement):
    loaded = modules_after(statement)
    assert "decima" in loaded
    assert loaded.isdisjoint({"grpc", "google", "prometheus_client"})
