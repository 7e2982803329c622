"""Settings shared by all tests."""

import os

from hypothesis import settings

# Compiled code is slow on its first call, so no example has a deadline; continuous integration draws the same
# examples every time.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
