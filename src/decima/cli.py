"""The command `decima`; the rest is loaded inside, so that Ctrl-C ends that too with one sentence."""

import gc
import os
import sys
import warnings


def main() -> None:
    """Run the command line of this process."""
    # Read when NumPy is loaded: its products here are small, and threads wait for each other longer than they work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    try:
        from decima.app import app
        from decima.commands.shared.compilation import end_while_compiling

        end_while_compiling()
        app(prog_name="decima")
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)  # 128 + SIGINT, as shells have it
    finally:
        gc.freeze()  # else Python looks through all that LLVM has, for a fifth of a short command, before it ends
