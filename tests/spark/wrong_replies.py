"""What a service must not say; each changes a decision on its way out."""

import functools

from decima.connect.service import scheduler_pb2 as protocol


def _change(values, reply):
    for name, value in values.items():
        if not reply.idle:
            setattr(reply, name, value)
    return reply


def changed(**values):
    """A function, for another process, that gives a decision other values, where it runs something."""
    return functools.partial(_change, values)


def _instead(data, _reply):
    return data


def another_call(reply):
    reply.sequence += 1
    return reply


WRONG = {
    "negative limit": changed(limit=-3),
    "zero limit": changed(limit=0),
    "unknown stage": changed(stage=999_999),
    "unknown job": changed(job="nobody's"),
    "too many executors": changed(executors=77),
    "another call": another_call,
    "not a message": functools.partial(_instead, b"\xff\xff\xff\xff\xff"),
    "text that is not UTF-8": functools.partial(_instead, b"\x1a\x02\xff\xfe"),
    "negative delay": changed(delay_ms=-1.0, executors=0),
    "endless delay": changed(delay_ms=float("inf"), executors=0),
    "delay with executors": changed(delay_ms=10.0),
}
# Every stage again and again, also those that have begun.
delay_again = changed(delay_ms=10.0, executors=0)


def always_idle(reply):
    return protocol.Decision(sequence=reply.sequence, idle=True)
