"""Logs as platforms lay them out: files, archives and events, each with its applications and their slots."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from decima.connect.eventlog.application import read_event_logs
from decima.connect.eventlog.recordings import cluster_slots
from measure import recount
from tests.field.test_field import END
from tests.field.test_recount import start
from tests.unit.connect.event_lines import (
    T0,
    executor_added,
    executor_removed,
    job_end,
    job_start,
    line,
    small_log,
    stage,
    task_end,
)

LOG_START = line("SparkListenerLogStart", **{"Spark Version": "3.5.1"})


def whole(app="app-1", at=0, attempt=None):
    """Lines of an application on two executors of one core."""
    return [LOG_START, start(app, at, attempt), *small_log(2, at=at + 10), END]


def joined(*lines):
    return b"".join(lines)


def tasks(count, at_once, executor="1"):
    """Ends of the tasks of stage 0."""
    begins = [1000 * (index // at_once) for index in range(count)]
    return [task_end(index, 0, begin, begin + 900, index, executor) for index, begin in enumerate(begins)]


def zipped(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, lines in files.items():
            archive.writestr(name.replace("__", "/"), joined(*lines))
    return content.getvalue()


def tarred(**files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, lines in files.items():
            member = tarfile.TarInfo(f"logs/{name}")
            member.size = len(joined(*lines))
            archive.addfile(member, io.BytesIO(joined(*lines)))
    return content.getvalue()


def three_queries():
    later = (small_log(2, query=f"{number}#0", at=3000 * number, first_id=number)[2:] for number in (1, 2))
    return [LOG_START, start(), *small_log(2), *(each for lines in later for each in lines), END]


def environment(**settings):
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    return line("SparkListenerEnvironmentUpdate", **{"Spark Properties": properties})


def gpu():
    """Eight cores and one GPU, of which a task takes a quarter."""
    executor = {"cores": {"Amount": 8}, "gpu": {"Amount": 1}}
    task = {"cpus": {"Amount": 1.0}, "gpu": {"Amount": 0.25}}
    requests = {"Executor Resource Requests": executor, "Task Resource Requests": task}
    profile = line("SparkListenerResourceProfileAdded", **{"Resource Profile Id": 1}, **requests)
    added = executor_added("1", 0, 8, **{"Resource Profile Id": 1})
    wide = stage(0, 8) | {"Resource Profile Id": 1}
    return [LOG_START, profile, start(), added, job_start(0, [wide]), *tasks(8, 4), job_end(0, 2000), END]


def comes_back():
    first, second = tasks(4, 2)[:2], [task_end(index, 0, 5000, 5900, index) for index in (2, 3)]
    lives = executor_added("1", 0, 2), executor_removed("1", 1000), executor_added("1", 5000, 2)
    return [start(), lives[0], job_start(0, [stage(0, 4)]), *first, *lives[1:], *second, job_end(0, 6000), END]


def of_spark_1_2():
    began = line("SparkListenerApplicationStart", **{"App Name": "a", "Timestamp": T0})
    times = ((b'"Submission Time"', b'"x"'), (b'"Completion Time"', b'"y"'))
    lines = [began, *small_log(2), END]
    for name, other in times:
        lines = [each.replace(name, other) for each in lines]
    return lines


DATES = three_queries()
ATTEMPTS = [whole("application_1_7", 20_000 * (number - 1), str(number)) for number in (1, 2)]
# Files by name, and the slots of each application.
LAYOUTS = {
    "EMR": ({f"application_1_7_{number}.gz": gzip.compress(joined(*ATTEMPTS[number - 1])) for number in (1, 2)}, [2]),
    "Databricks": ({
        "eventlog-2023-12-31--23-00.gz": gzip.compress(joined(*DATES[:6])),
        "eventlog-2024-01-01--00-00.gz": gzip.compress(joined(*DATES[6:11])),
        "eventlog": joined(*DATES[11:]),
    }, [2]),
    "Kubernetes": ({
        "spark-01ab.inprogress": joined(*whole("spark-01ab")[:-1]), "spark-01ac": joined(*whole("spark-01ac")),
    }, [2, 2]),
    "history server": ({"eventLogs-application_1_7.zip": zipped(
        application_1_7_1=ATTEMPTS[0],
        eventlog_v2_application_1_7_2__events_1_application_1_7_2=ATTEMPTS[1][:5],
        eventlog_v2_application_1_7_2__events_2_application_1_7_2=ATTEMPTS[1][5:],
        eventlog_v2_application_1_7_2__appstatus_application_1_7_2=[],
    )}, [2]),
    "rolled": ({
        "eventlog_v2_app-1/events_9_app-1": joined(*whole()[:6]), "eventlog_v2_app-1/appstatus_app-1": b"",
        "eventlog_v2_app-1/events_10_app-1": joined(*whole()[6:]),
    }, [2]),
    "tar": ({"two.tgz": tarred(one=whole(), two=whole("app-2"))}, [2, 2]),
    "Windows": ({"log": b"\xef\xbb\xbf" + joined(*whole()).replace(b"\n", b"\r\n")}, [2]),
    "xz and bz2": ({"a": lzma.compress(joined(*whole())), "b": bz2.compress(joined(*whole("app-2")))}, [2, 2]),
    "folders of dates": ({
        "a/2024/01/eventlog": joined(*whole()), "b/2024/01/eventlog": joined(*whole("app-2")),
    }, [2, 2]),
    "copies": ({
        "a": joined(*whole()), "a.gz": gzip.compress(joined(*whole())), "a.inprogress": joined(*whole()[:-2]),
    }, [2]),
    "reversed": ({"log": joined(LOG_START, start(), *whole()[:1:-1])}, [2]),
    "no properties": ({"log": joined(*whole()).replace(b'{"decima.query":"q#0"}', b"null")}, [2]),
    "GPU": ({"log": joined(*gpu())}, [4]),
    "executor that comes back": ({"log": joined(*comes_back())}, [2]),
    "local": ({"log": joined(
        environment(spark_master="local[4]"), start(), job_start(0, [stage(0, 2)]), *tasks(2, 2, "driver"),
        job_end(0, 1000), END,
    )}, [4]),
    "Spark 1.2": ({"local-1": joined(*of_spark_1_2())}, [2]),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_of_a_platform(layout, tmp_path):
    files, slots = LAYOUTS[layout]
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    lines, differences = recount.compare(tmp_path)
    assert not differences, "\n".join(lines)
    logs = read_event_logs([tmp_path])
    assert [cluster_slots(application) for application in logs] == slots
    assert all((application.queries.skipped == "").all() for application in logs)
