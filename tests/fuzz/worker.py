"""Give damaged inputs to readers, to each in a process of its own with bounds on memory and time.

    python -m tests.fuzz.worker READER,READER COUNT SEED FOLDER

Prints a line of JSON per reader: counts, and what the first failure was. An input that ends a process is left in the
reader's folder.
"""

import json
import multiprocessing
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

import psutil
from hypothesis import HealthCheck, Phase, given, seed, settings

from decima.core.errors import DecimaError
from tests.fuzz.readers import READERS, corpus, prepare

MORE_BYTES = 2**30  # of address space, beyond what the program has after it has read good inputs
MOST_SECONDS = 10.0  # of processor time for one input
BLOCK = 1000


class TooLongError(BaseException):
    """An input took too long; not to be mistaken for an error of a reader."""


def _stop(*_):
    raise TooLongError(f"more than {MOST_SECONDS:g} s for one input")


def work(name, count, first_seed, folder):
    reader = READERS[name]()
    path = folder / reader.file
    prepare(name, folder)
    told = {"reader": name, "inputs": 0, "results": 0, "refused": 0, "slowest_s": 0.0, "warm": False, "failure": None}

    def read(content):
        path.write_bytes(content)
        told["inputs"] += 1
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS if told["warm"] else 300.0)
        try:
            reader.read(path)
            told["results"] += 1
        except DecimaError as error:
            str(error).encode()  # can be shown
            told["refused"] += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            told["slowest_s"] = max(told["slowest_s"], time.process_time() - began)

    signal.signal(signal.SIGPROF, _stop)
    try:
        for content in (*reader.seeds, *corpus(name, "_*")):  # compiles what is not yet; takes its time
            read(content)
        told |= {"slowest_s": 0.0, "warm": True}
        limit = psutil.Process().memory_info().vms + MORE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for begin in range(0, count, BLOCK):
            options = settings(
                max_examples=min(BLOCK, count - begin),
                database=None,
                deadline=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            )
            seed(first_seed + begin // BLOCK)(options(given(reader.inputs)(read)))()
        told["more_mb"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    except BaseException as error:
        text = "".join(traceback.format_exception(error))  # messages of hypothesis name whole strategies
        told["failure"] = text if len(text) <= 6000 else f"{text[:4000]}\n...\n{text[-2000:]}"
        told["input"] = repr(path.read_bytes()[:2000])
    tell(told)


def tell(told):
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def main(names, count, first_seed, folder):
    for name in names.split(","):
        (folder / name).mkdir(parents=True, exist_ok=True)
        # Forked, so that what all readers need is imported once.
        process = multiprocessing.get_context("fork").Process(
            target=work, args=(name, count, first_seed, folder / name)
        )
        process.start()
        process.join(300 + count)
        if process.is_alive():
            process.kill()
            process.join()
        if process.exitcode != 0:
            tell({"reader": name, "failure": f"ended by {process.exitcode}", "input": f"the file in {folder / name}"})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
