"""Calls of the service's protocol as no client would make them: real ones, damaged; all from a seed."""

import math

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

import decima
from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.node_client import schedule_by_service
from decima.connect.service.simulator_client import StateReporter
from decima.systems.heterogeneous.tpch import tpch_instance
from decima.workload import synthetic_batch
from tests.drivers import Watching
from tests.services import Direct, sessions_of

KINDS = {
    "Open": protocol.OpenRequest,
    "Decide": protocol.DecideRequest,
    "Assign": protocol.AssignRequest,
    "Close": protocol.CloseRequest,
    "Watch": protocol.WatchRequest,
}
_WHOLE = (0, 1, 2, 3, 7, 100, 2_000, 10_000, 10_001, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, -1, -(2**63))
_REAL = (0.0, -0.0, 1.0, -1.0, 1e-300, 1e15, 1e16, 1e300, math.nan, math.inf, -math.inf)
_TEXT = ("", "0", "1", "j", "c", "fair", "decima", "released", "x" * 600, "\0", "é\u202e\n", "None")
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def recorded(seed):
    """Reports of a simulated cluster, from its first decision to its last."""
    requests = []

    def look(observation):
        if not requests:
            look.reporter = StateReporter(observation.state)
        request = look.reporter.request(not requests)
        request.sequence = len(requests) + 1
        requests.append(request)

    decima.simulate(synthetic_batch(3, seed=seed), Watching(decima.make_scheduler("fair"), look), 5, seed)
    return requests


def recorded_nodes(seed, name):
    """Reports of a cluster of heterogeneous executors whose nodes a scheduler decides, from the first to the last."""
    instance = tpch_instance(3, seed, edges=5.0, executors=5, interarrival_s=20.0)
    client = Direct(sessions_of("fair", heterogeneous=[name]))
    schedule_by_service(instance, client, name)
    return client.reports


class Noise:
    """Source of calls.

    Args:
        seed: Of all chance.
        reports: Reports to begin with.
        method: What they are reports for.
    """

    def __init__(self, seed, reports, method="Decide"):
        self.rng = np.random.default_rng(seed)
        self.reports = reports
        self.method = method

    def one_of(self, items):
        return items[int(self.rng.integers(len(items)))]

    def often(self):
        return self.rng.random() < 0.8

    def opening(self):
        """Bytes of an `Open`."""
        request = protocol.OpenRequest(version=1, client="noise", executors=5)
        if self.rng.random() < 0.3:
            request.shared_cluster = "c"
        request.scheduler = self.one_of(("", "", "decima", "random", "capped_srw"))
        request.mode = self.one_of(("", "", "released"))
        if self.method == "Assign":
            request.shared_cluster, request.scheduler = "", self.one_of(("", "", "heft", "sjf_deft"))
            request.heterogeneous.speeds.extend(self.rng.uniform(1.0, 3.0, 5))
            request.heterogeneous.rate = 1.0
        return self.damaged(request)

    def calls(self, keys):
        """Method and bytes of some calls of open sessions, in an order that is right more often than not."""
        first = int(self.rng.integers(len(self.reports)))
        numbers = dict.fromkeys(keys, 0)
        for report in self.reports[first : first + int(self.rng.integers(2, 12))]:
            if not self.often():
                continue  # lost on its way
            key = keys[0] if self.often() else self.one_of(keys)
            request = KINDS[self.method]()
            request.CopyFrom(report)
            request.session = key if self.rng.random() < 0.97 else self.one_of(_TEXT)
            numbers[key] += 1 if self.often() else int(self.rng.integers(3))
            request.sequence = numbers[key]
            request.full = numbers[key] == 1 or self.rng.random() < 0.1
            if self.rng.random() < 0.1:
                request.jobs.MergeFrom(self.one_of(self.reports).jobs)
            data = self.damaged(request)
            yield self.method, data
            if self.rng.random() < 0.05:
                yield self.method, data
            if self.rng.random() < 0.03:
                yield "Close", self.damaged(protocol.CloseRequest(session=self.one_of(keys)))
            if self.rng.random() < 0.03:
                yield self.one_of(list(KINDS)), self.rng.bytes(int(self.rng.integers(60)))

    def damaged(self, message):
        """Bytes of a message, most often with one field or some bytes changed."""
        chance = self.rng.random()
        if chance < 0.3:
            return message.SerializeToString()
        if chance < 0.8:
            for _ in range(int(self.rng.integers(1, 4))):
                self.change_field(message)
            return message.SerializeToString()
        return self.change_bytes(bytearray(message.SerializeToString()))

    def change_field(self, message):
        """Change a field of a message, or of one inside of it."""
        while True:
            field = self.one_of(message.DESCRIPTOR.fields)
            if field.message_type is None:
                break
            if not field.is_repeated:
                message = getattr(message, field.name)
                continue
            inner = getattr(message, field.name)
            chance = self.rng.random()
            if not inner or chance < 0.1:
                inner.add()
            elif chance < 0.2:
                del inner[int(self.rng.integers(len(inner)))]
                return
            elif chance < 0.3:
                inner.add().CopyFrom(self.one_of(inner))
            elif chance < 0.35:
                inner.extend([inner[0]] * int(self.one_of((50, 3_000))))
                return
            message = self.one_of(inner)
        value = self.value(field, message)
        if not field.is_repeated:
            setattr(message, field.name, value)
        elif (values := getattr(message, field.name)) and self.often():
            values[int(self.rng.integers(len(values)))] = value
        else:
            values.extend([value] * int(self.one_of((1, 1, 2, 5_000))))

    def value(self, field, message):
        """A value of a field's type: one of its own kind, or an extreme one."""
        kind = field.cpp_type
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return bool(self.rng.integers(2))
        if kind == FieldDescriptor.CPPTYPE_STRING:
            return self.one_of(_TEXT)
        if kind == FieldDescriptor.CPPTYPE_DOUBLE:
            return self.one_of(_REAL)
        low, high = _RANGES[kind]
        near = 0 if field.is_repeated else getattr(message, field.name) + int(self.rng.integers(-2, 3))
        return min(max(near if self.rng.random() < 0.5 else self.one_of(_WHOLE), low), high)

    def change_bytes(self, data):
        """Flip, cut, repeat or insert bytes."""
        for _ in range(int(self.rng.integers(1, 4))):
            place = int(self.rng.integers(len(data) + 1))
            chance = self.rng.random()
            if chance < 0.5 and place < len(data):
                data[place] ^= 1 << int(self.rng.integers(8))
            elif chance < 0.65:
                del data[place:]
            elif chance < 0.8:
                data[place:place] = data[place : place + int(self.rng.integers(1, 40))]
            else:
                data[place:place] = self.rng.bytes(int(self.rng.integers(1, 12)))
        return bytes(data)
