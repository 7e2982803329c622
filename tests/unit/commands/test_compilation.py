"""Compilation: announced once, and no part of what a progress bar calls gone."""

import numba
from numba.core import event

from decima.commands.shared import compilation
from decima.core import progress
from decima.core.progress import progress_bar


def test_compilation_is_announced_once_and_no_part_of_the_time(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_LINE_S", 60.0)
    monkeypatch.setattr(compilation, "ANNOUNCED_S", 0.0)
    # A command of another test may have begun to watch.
    monkeypatch.setitem(event._registered, "numba:compile", [])
    compilation.watch_compilation.cache_clear()
    compilation.watch_compilation()

    @numba.njit
    def double(value):
        return 2 * value

    with progress_bar("work", 4, "piece") as bar:
        began_s = bar.start_t
        assert double(2) == 4
        gone_s = bar.format_dict["elapsed"]
        compiled_s = bar.start_t - began_s
        assert compiled_s > 0.01
        assert gone_s < compiled_s
        double(2.0)
        assert bar.start_t - began_s > compiled_s
    assert capsys.readouterr().err.count(compilation.ANNOUNCEMENT) == 1
