"""The subcommands of `decima`, one module per topic; :mod:`decima.app` puts them together.

Heavy imports stand inside the commands, so that `decima --help` is quick.
"""
