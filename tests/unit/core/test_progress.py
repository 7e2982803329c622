"""Progress of long work: silent without a label, lines where there is no terminal, the present best in them."""

import contextlib
import fcntl
import gc
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time

import pytest
from tqdm import std

import decima
from decima.core import progress
from decima.core.progress import progress_bar
from decima.workload import synthetic_batch

LINE = r"work: \d+ %, \d+ of 4 pieces, \d\d:\d\d gone, (\d\d:\d\d|\?) left, best \d"


@pytest.fixture
def at_once(monkeypatch):
    """Lines begin at once and come with every piece."""
    monkeypatch.setattr(progress, "FIRST_LINE_S", 0.0)
    monkeypatch.setattr(progress, "MOST_S", 0.0)


def work(bar):
    with bar:
        for piece in range(4):
            bar.set_postfix_str(f"best {piece}", refresh=False)
            bar.update()


def test_silent_without_a_label(at_once, capsys):
    work(progress_bar(None, 4, "piece"))
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_before_the_bar_is_whole_leaves_nothing_to_complain_about(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    complaints = []
    monkeypatch.setattr(std.tqdm, "_get_free_pos", interrupted)
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    with pytest.raises(KeyboardInterrupt):
        progress_bar("work", 3)
    gc.collect()
    assert complaints == []


def test_silent_while_it_is_short(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_LINE_S", 60.0)
    work(progress_bar("work", 4, "piece"))
    assert capsys.readouterr() == ("", "")


def test_lines_say_what_is_done_what_is_left_and_the_best(at_once, capsys):
    work(progress_bar("work", 4, "piece"))
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) >= 4
    assert all(re.fullmatch(LINE, line) for line in lines[1:]), lines
    assert lines[-1].startswith("work: 100 %, 4 of 4 pieces, ")
    assert lines[-1].endswith("best 3")


def test_lines_come_less_and_less_often(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_LINE_S", 0.1)
    with progress_bar("work", 1.0, share=True) as bar:
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            time.sleep(0.005)
            bar.update(0.001)
    lines = capsys.readouterr().err.splitlines()
    # After 0.1 s, then 0.15, 0.225, ... later, and the last one at the end.
    assert 3 <= len(lines) <= 6
    assert re.fullmatch(r"work: \d+ %, \d\d:\d\d gone, \S+ left", lines[0])


def test_a_terminal_gets_a_bar_that_is_redrawn():
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))  # a new one has no columns
    code = "from decima.core.progress import progress_bar\nwith progress_bar('work', 2) as bar: bar.update(2)"
    subprocess.run([sys.executable, "-c", code], stderr=child, check=True)
    os.close(child)
    shown = b""
    with open(parent, "rb", buffering=0) as terminal, contextlib.suppress(OSError):  # how a terminal ends
        while part := terminal.read(10_000):
            shown += part
    assert shown.startswith(b"\rwork:   0%|")
    assert b"\rwork: 100%|" in shown


def test_a_comparison_names_the_best_so_far(at_once, capsys):
    options = {"executors": 4, "seeds": range(3)}
    comparison = decima.compare(["fifo", "fair"], lambda seed: synthetic_batch(2, seed, ["xs"]), **options)
    assert capsys.readouterr().err == ""
    decima.compare(["fifo", "fair"], lambda seed: synthetic_batch(2, seed, ["xs"]), progress="compare", **options)
    last = capsys.readouterr().err.splitlines()[-1]
    best = comparison.summary().iloc[0]
    assert last.startswith("compare: 100 %, 6 of 6 runs, ")
    assert last.endswith(f"best {best.scheduler} {best.mean_s:.2f} s")


def test_the_time_that_is_left_waits_for_a_tenth_of_the_work(at_once, capsys):
    with progress_bar("work", 100, "piece") as bar:
        for pieces in (9, 41):
            time.sleep(0.01)
            bar.update(pieces)
    early, late = capsys.readouterr().err.splitlines()[-2:]
    assert early.startswith("work: 9 %")
    assert early.endswith("? left")
    assert late.startswith("work: 50 %")
    assert re.search(r"\d\d:\d\d left$", late)


def test_the_time_that_is_left_leaves_out_the_first_piece_in_which_code_is_compiled(at_once, capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress_bar("work", 60, "piece") as bar:
        for seconds in [120.0, *[1.0] * 29]:
            now[0] += seconds
            bar.update()
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("work: 50 %, 30 of 60 pieces, ")
    assert last.endswith(", 00:30 left")
