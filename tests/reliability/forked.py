"""Command lines in processes that share their imports; a program, since importing takes longer than the tiny training.

Every line of its input is a list of words for ``decima``. A new process does that and nothing else; its id is printed
at once, and how it ended (an exit code, or below 0 the signal that killed it) afterwards. TensorFlow is imported before
that, but nothing is computed with it, so that each process starts its own threads.
"""

import importlib
import json
import os
import sys

MODULES = (
    "decima.commands.train",
    "decima.learning.run",
    "decima.learning.cards",
    "decima.systems.spark.policy.scheduler",
)


def say(number):
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def main():
    """Do what the input says, one command line after the other."""
    from decima.app import app
    from decima.learning.quiet import import_tensorflow

    import_tensorflow()
    for module in MODULES:
        importlib.import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.dup2(2, 1)
            app(json.loads(line), prog_name="decima")  # exits
        say(child)
        say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
