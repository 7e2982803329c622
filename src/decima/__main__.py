"""`python -m decima`: the same as the command `decima`."""

from decima.cli import main

main()
