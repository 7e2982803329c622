"""TensorFlow without notes on missing accelerators and without private threads."""

from __future__ import annotations

import os
import sys
import tempfile

from decima.core.extras import require


def import_tensorflow() -> None:
    """Import TensorFlow and Spektral; what TensorFlow says meanwhile is shown only if it fails.

    Raises:
        MissingExtraError: TensorFlow is not installed.
    """
    require("learn")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
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
