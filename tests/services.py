"""Services for tests: in a thread of this process, or a process of its own."""

import asyncio
import contextlib
import functools
import os
import subprocess
import sysconfig
import threading
import time
from pathlib import Path

from decima.commands.shared.compilation import ANNOUNCEMENT
from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.server import Address, Service
from decima.connect.service.sessions import Offering, Sessions
from decima.connect.service.steps import finish
from decima.systems.heterogeneous import make_scheduler as make_node_scheduler
from decima.systems.spark.schedulers import make_scheduler
from tests.drivers import IN_CORE

COMMAND = Path(sysconfig.get_path("scripts")) / "decima"


def unannounced(stderr):
    """Standard error of a command, without the line that it compiles, which it may be the first to do."""
    return stderr.replace(f"{ANNOUNCEMENT}\n", "")


# With what they need to ask for nothing that no client reports.
SERVED = ["entry_srw:level=0,entry_s=5" if name == "entry_srw" else name for name in IN_CORE]


def sessions_of(*names, book=None, limits=None, unequal=()):
    """Sessions with these schedulers, `name` or `name:parameter=value`; all that are registered if none is named.

    ``unequal`` names schedulers for sessions whose executors differ in speed.
    """
    makers = {name: functools.partial(make_scheduler, name) for name in names or SERVED}
    node_schedulers = {name: make_node_scheduler(name) for name in unequal}
    return Sessions(Offering(makers, node_schedulers), book, limits)


class Direct:
    """What a client of unequal executors sees of a service, without a network; reports are kept."""

    def __init__(self, sessions):
        self.sessions = sessions
        self.reports = []

    def call(self, method, request, kind):
        if method == "Open":
            return self.sessions.open(request)
        if method == "Close":
            leave(self.sessions, request.session)
            return kind()
        self.reports.append(protocol.AssignRequest.FromString(request.SerializeToString()))
        return finish(self.sessions.find(request.session).session.assign(request))


def leave(sessions, key):
    """End a session, as the server does."""
    finish(sessions.remove(key).leave())


def expire(sessions):
    """End the sessions whose lease is over; returns their number."""
    keys = sessions.expired()
    for key in keys:
        leave(sessions, key)
    return len(keys)


def until(true, seconds=180.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(0.02)


@contextlib.contextmanager
def running(sessions, made=None, **address):
    """A service at a free port, in a thread; yields it with `port` set. One that is ``made`` has its address."""
    service = made or Service(sessions, Address(**({"port": 0, "grace_s": 1.0} | address)))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(service.start(), loop).result(60)
        service.loop = loop
        service.target = f"127.0.0.1:{service.port}"
        try:
            yield service
        finally:
            asyncio.run_coroutine_threadsafe(service.stop(), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def largest_report(jobs=25, stages=2_000, edges=20_000):
    """A report as large as the limits allow: parents are listed behind their children, as far away as there are."""
    request = protocol.DecideRequest(full=True, sequence=1, executors=4, offer=protocol.Offer(executors=3))
    per_stage = edges // stages
    for number in range(jobs):
        job = request.jobs.add(job=f"j{number}")
        for stage in range(stages):
            left = stages - 1 - stage
            parents = {stage + 1 + place * left // per_stage for place in range(per_stage)} if left else ()
            job.stages.add(stage=stage, num_tasks=3, parents=parents)
        request.states.add(job=job.job, runnable=[stages - 1], schedulable=[stages - 1])
    return request


def make_certificate(folder, name):
    """Files of a new certificate for this machine and of its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@contextlib.contextmanager
def process(*arguments, environment=None, stdin=subprocess.DEVNULL):
    """`decima serve` as a process; yields it with `target`, and `line`, what it said when it was ready."""
    words = [str(COMMAND), "serve", *map(str, arguments)]
    started = subprocess.Popen(
        words,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (environment or {}),
    )
    try:
        started.line = started.stdout.readline()
        if started.line:
            started.target = started.line.split(" at ")[1].split(",")[0].strip()
        yield started
    finally:
        started.kill()
        started.wait(60)
        started.stdout.close()
        started.stderr.close()
