"""The subcommands of `decima`, one module per topic; each registers them by `register(app)`.

Heavy imports stand inside the commands, so that `decima --help` is quick.
"""
