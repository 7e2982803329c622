"""What a service must not say; each changes a decision on its way out."""

from decima.connect.service import scheduler_pb2 as protocol


def negative_limit(reply):
    if not reply.idle:
        reply.limit = -3
    return reply


def zero_limit(reply):
    if not reply.idle:
        reply.limit = 0
    return reply


def unknown_stage(reply):
    if not reply.idle:
        reply.stage = 999_999
    return reply


def unknown_job(reply):
    if not reply.idle:
        reply.job = "nobody's"
    return reply


def too_many_executors(reply):
    if not reply.idle:
        reply.executors = 77
    return reply


def another_call(reply):
    reply.sequence += 1
    return reply


def not_a_message(reply):
    return b"\xff\xff\xff\xff\xff"


def text_that_is_not_utf8(reply):
    return b"\x1a\x02\xff\xfe"


def always_idle(reply):
    return protocol.Decision(sequence=reply.sequence, idle=True)


def negative_delay(reply):
    if not reply.idle:
        reply.delay_ms, reply.executors = -1.0, 0
    return reply


def endless_delay(reply):
    if not reply.idle:
        reply.delay_ms, reply.executors = float("inf"), 0
    return reply


def delay_with_executors(reply):
    if not reply.idle:
        reply.delay_ms = 10.0
    return reply


def delay_again(reply):
    """Delays every stage again and again, also those that have begun."""
    if not reply.idle:
        reply.delay_ms, reply.executors = 10.0, 0
    return reply
