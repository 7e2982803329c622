"""One function applied to many items in parallel, by threads, processes or a Ray cluster.

Comparison, tuning, search and rollouts of training run their work through this module. Results come in the order of the
items and depend neither on the backend nor on the number of workers; an exception in a worker (and Ctrl-C) is raised in
the caller, and what has not begun is dropped. Then runs in threads are stopped; processes are ended after Ctrl-C.

Whoever outgrows one machine sets ``RAY_ADDRESS``, or names the backend ``"ray"``; this needs the extra ``ray``.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, ClassVar, Protocol

from decima.core.checks import check_whole
from decima.core.errors import ConfigError, WorkerError
from decima.core.extras import require
from decima.core.interrupts import obey

RAY_PATIENCE_S = 120.0  # an overloaded machine takes half a minute to start an actor
RAY_TRIES = 3  # actors that one item may cost


class Workers(Protocol):
    """Workers that apply one function to items; see :func:`make_workers`."""

    def map(self, items: Sequence, advance: Callable[[Any], object] | None = None) -> list:
        """``[function(item) for item in items]``; ``advance(result)`` is called here after each.

        Raises:
            WorkerError: A worker died.
        """

    def close(self) -> None:
        """Free the workers; they come back when they are needed again."""


def check_workers(workers: int | None) -> int:
    """Number of workers, all cores of this machine by default.

    Raises:
        ConfigError: It is not a whole number of at least 1.
    """
    if workers is None:
        return os.cpu_count() or 1
    check_whole("workers", workers, least=1)
    return int(workers)


def _gather(results: Iterable, advance: Callable[[Any], object] | None) -> list:
    values = []
    for value in results:
        values.append(value)
        if advance is not None:
            advance(value)
    return values


class ThreadWorkers:
    """Threads that run side by side inside the compiled core, which releases the interpreter lock."""

    def __init__(self, function: Callable, workers: int | None = None) -> None:
        self.workers = check_workers(workers)
        self._function = function

    def map(self, items: Sequence, advance: Callable[[Any], object] | None = None) -> list:
        """Apply the function; see :class:`Workers`."""
        count = min(self.workers, len(items))
        if count <= 1:
            return _gather(map(self._function, items), advance)
        stop = threading.Event()
        with ThreadPoolExecutor(count, initializer=obey, initargs=(stop,)) as pool:
            try:
                return _gather(pool.map(self._function, items), advance)
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def close(self) -> None:
        """Do nothing: threads end with every map."""


class ProcessWorkers:
    """Processes of this machine. Each gets the function once, pickled."""

    def __init__(self, function: Callable, workers: int | None = None) -> None:
        self.workers = check_workers(workers)
        self._function = function
        self._pool: ProcessPoolExecutor | None = None

    def map(self, items: Sequence, advance: Callable[[Any], object] | None = None) -> list:
        """Apply the function; see :class:`Workers`."""
        if self._pool is None:
            self._context = _Spawn()
            self._pool = ProcessPoolExecutor(
                self.workers,
                mp_context=self._context,
                initializer=_enter_process,
                initargs=(pickle.dumps(self._function),),
            )
        try:
            return _gather(self._pool.map(_apply, items), advance)
        except BrokenProcessPool as error:
            self._pool = None
            raise WorkerError("a worker process died, perhaps for want of memory") from error
        except KeyboardInterrupt:
            for process in self._context.started:
                process.terminate()
            self.close()
            raise

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


_function_of_process: Callable | None = None


class _Spawn(multiprocessing.context.SpawnContext):
    """Context that starts processes and remembers them, to end them in the middle of work."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[multiprocessing.process.BaseProcess] = []

    def Process(self, *args, **keywords):  # noqa: N802 - the name that pools call
        """A process that has not started yet."""
        self.started.append(super().Process(*args, **keywords))
        return self.started[-1]


def _enter_process(function: bytes) -> None:
    """Prepare a worker process; Ctrl-C, which reaches all processes, is left to the caller."""
    global _function_of_process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _function_of_process = pickle.loads(function)


def _apply(item: Any) -> Any:
    return _function_of_process(item)


class _Actor:
    """Body of a Ray actor."""

    def prepare(self, function: Callable) -> None:
        """Keep the function."""
        self._function = function

    def apply(self, item: Any) -> Any:
        """Apply the function to one item."""
        return self._function(item)


class RayWorkers:
    """Ray actors of one core each, on the cluster of ``RAY_ADDRESS``, else on this machine.

    Each begins as soon as the cluster has a core for it; nothing waits for the others. When an actor dies, alone or
    with its machine, another one does its item again, and a warning says so.

    Raises:
        MissingExtraError: Ray is not installed.
    """

    _sharers: ClassVar[set] = set()  # those on a Ray that was started here; the last one ends it
    _print: ClassVar[Any] = None

    def __init__(self, function: Callable, workers: int | None = None) -> None:
        require("ray")
        import ray

        if workers is not None:
            check_workers(workers)
        self._ray = ray
        self._workers = workers
        self._function = function
        self._free: list = []  # actors without work
        self._calls: dict = {}  # reference of a result -> its actor and the index of its item, None while it starts

    @property
    def workers(self) -> int:
        """Number of actors: by default all cores of the cluster, once Ray runs."""
        if self._workers is None:
            self._start()
            self._workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return self._workers

    def _start(self) -> None:
        if self._ray.is_initialized():
            if self._sharers:
                self._sharers.add(self)
            return
        address = os.environ.get("RAY_ADDRESS") or "local"  # a cluster of its own, whatever else runs on this machine
        sizes = {"num_cpus": self._workers, "include_dashboard": False} if address == "local" else {}
        try:
            self._ray.init(address, log_to_driver=False, logging_level="ERROR", **sizes)
        except Exception as error:  # Ray has no type for what goes wrong here
            raise WorkerError(f"Ray cannot be used at {address} (RAY_ADDRESS): {error}") from error
        self._sharers.add(self)
        # Ray writes a page about a dead node to stdout, where results are, and has no option against it.
        driver = self._ray._private.worker
        RayWorkers._print, driver.print_to_stdstream = driver.print_to_stdstream, lambda *_, **__: None

    def map(self, items: Sequence, advance: Callable[[Any], object] | None = None) -> list:
        """Apply the function; see :class:`Workers`."""
        try:
            return _gather(self._results(items), advance)
        except BaseException:
            for reference, (actor, index) in list(self._calls.items()):
                if index is not None:
                    self._ray.kill(actor)
                    del self._calls[reference]
            raise

    def _results(self, items: Sequence) -> Iterator:
        left, ended, deaths = deque(range(len(items))), {}, Counter()
        errors = self._ray.exceptions
        for wanted in range(len(items)):
            while wanted not in ended:
                self._share_out(items, left)
                index, result = self._next_end()
                if isinstance(result, errors.RayTaskError):
                    if index is None:  # the function cannot be sent
                        raise result.cause from result
                    left = deque(each for each in left if each < index)
                elif isinstance(result, errors.RayError):
                    left.extendleft([] if index is None else [index])
                    self._count_death(deaths, index, result)
                    continue
                ended[index] = result
            result = ended.pop(wanted)
            if isinstance(result, errors.RayTaskError):
                raise result.cause from result
            yield result

    def _share_out(self, items: Sequence, left: deque) -> None:
        """Give items to free actors, and ask for more actors."""
        self._start()
        if (missing := min(self.workers, len(items)) - len(self._free) - len(self._calls)) > 0:
            actor_class, function = self._ray.remote(num_cpus=1)(_Actor), self._ray.put(self._function)
            for actor in [actor_class.remote() for _ in range(missing)]:
                self._calls[actor.prepare.remote(function)] = actor, None
        while self._free and left:
            actor, index = self._free.pop(), left.popleft()
            self._calls[actor.apply.remote(items[index])] = actor, index

    def _next_end(self) -> tuple[int | None, Any]:
        """Index of the next item to end, None for a new actor, and its result.

        Raises:
            WorkerError: No actor works, and none comes.
        """
        idle = all(index is None for _, index in self._calls.values())
        ready, _ = self._ray.wait(list(self._calls), timeout=RAY_PATIENCE_S if idle else None)
        if not ready:
            cores = int(self._ray.cluster_resources().get("CPU", 0))
            raise WorkerError(
                f"no Ray worker came within {RAY_PATIENCE_S:g} s: all {cores} cores of the cluster are busy"
            )
        actor, index = self._calls.pop(ready[0])
        try:
            result = self._ray.get(ready[0])
        except self._ray.exceptions.RayTaskError as error:
            result = error
        except self._ray.exceptions.RayError as error:
            self._ray.kill(actor)
            return index, error
        self._free.append(actor)
        return index, result

    def _count_death(self, deaths: Counter, index: int | None, error: Exception) -> None:
        if not deaths:
            living = len(self._free) + len(self._calls)
            warnings.warn(f"a Ray worker died, {living} are left; its work is done again", RuntimeWarning, stacklevel=2)
        deaths[index] += 1
        if deaths[index] == RAY_TRIES * (self.workers if index is None else 1):
            when = "as they started" if index is None else "over the same work"
            raise WorkerError(f"{deaths[index]} Ray workers died {when}, perhaps for want of memory") from error

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        if self._ray.is_initialized():
            for actor in [*self._free, *(actor for actor, _ in self._calls.values())]:
                self._ray.kill(actor)
        self._free, self._calls = [], {}
        if self in self._sharers:
            self._sharers.remove(self)
            if not self._sharers:
                self._ray.shutdown()
                self._ray._private.worker.print_to_stdstream = self._print


BACKENDS: dict[str, Callable[..., Workers]] = {
    "threads": ThreadWorkers,
    "processes": ProcessWorkers,
    "ray": RayWorkers,
}


def make_workers(function: Callable, backend: str | None = None, workers: int | None = None) -> Workers:
    """Workers that apply a function of one item.

    Args:
        function: What to apply. Other backends than threads send it to each worker once, pickled, where it may keep
            what one item leaves for the next. Items and results are pickled there too.
        backend: ``"threads"``, ``"processes"`` or ``"ray"``; by default ``"ray"`` where ``RAY_ADDRESS`` is set, else
            ``"threads"``.
        workers: Number of workers, by default the number of cores.

    Raises:
        ConfigError: The backend is unknown, ``workers`` is not a whole number of at least 1.
        MissingExtraError: The backend is Ray's, which is not installed.
    """
    name = backend or ("ray" if os.environ.get("RAY_ADDRESS") else "threads")
    if name not in BACKENDS:
        raise ConfigError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    return BACKENDS[name](function, workers)


def map_threads(
    function: Callable, items: Sequence, threads: int | None, advance: Callable[[Any], object] | None = None
) -> list:
    """``[function(item) for item in items]`` in threads; ``advance(result)`` is called after each."""
    return ThreadWorkers(function, threads).map(items, advance)
