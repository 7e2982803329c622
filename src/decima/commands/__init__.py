"""The subcommands of `decima`, one module per topic; each adds its own by `register(app)`.

Heavy imports stand inside the commands, so that `decima --help` is quick.
"""
