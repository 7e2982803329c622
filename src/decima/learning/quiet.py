"""TensorFlow without notes on missing accelerators, without private threads, and where Ctrl-C waits for it."""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from decima.core.extras import require

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # files from outside import it, too


def import_tensorflow() -> None:
    """Import TensorFlow and Spektral; what TensorFlow says meanwhile is shown only if it fails.

    Raises:
        MissingExtraError: TensorFlow is not installed.
    """
    require("learn")
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            import spektral  # noqa: F401
            import tensorflow  # noqa: F401
        except BaseException:
            messages.seek(0)
            os.write(kept, messages.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def use_single_threaded_operations() -> bool:
    """Let every TensorFlow operation use one thread; parallelism comes from chunks.

    Returns:
        Whether it is so: TensorFlow does not change it once it has computed something.
    """
    import tensorflow as tf

    if tf.config.threading.get_intra_op_parallelism_threads() != 1:
        try:
            tf.config.threading.set_intra_op_parallelism_threads(1)
        except RuntimeError:
            return False
    return True


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back; where TensorFlow's C++ calls Python, it makes another error of it.

    In other threads than the main one, which no signal reaches, and with another handler of SIGINT it does nothing.

    Raises:
        KeyboardInterrupt: At the end, if Ctrl-C was pressed meanwhile.
    """
    usual = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if pressed:
            raise KeyboardInterrupt
