"""Charts of schedules: pictures, or a page to explore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from decima.commands.shared.outputs import output_path
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.core.system import RunResult

CHARTS = (".png", ".pdf", ".html")


def draw_schedules(path: Path, *results: RunResult) -> None:
    """Draw runs of the same jobs above each other, by the ending of the name as picture or as page to explore.

    Raises:
        ConfigError: A run launched no task, or the file cannot be written.
    """
    if path.suffix == ".html":
        from decima.plotting.explorer import explore

        page = explore(*results)
        with output_path(path) as temporary:
            page.save(temporary)
        return
    from decima.plotting import style
    from decima.plotting.gantt import gantt_of

    figure = style.new_figure(style.PAGE, 0.4 + 2.8 * len(results))
    rows = figure.subplots(len(results), 1, sharex=True, squeeze=False)[:, 0]
    for axes, result in zip(rows, results, strict=True):
        gantt_of(result, axes)
    for axes in rows[:-1]:
        axes.set_xlabel("")
    rows[0].set_xlim(0.0, max(axes.get_xlim()[1] for axes in rows))
    first = results[0]
    caption = f"{count(len(first.workload), 'job')}, mode {first.settings.mode}, seed {first.seed}"
    style.entitle(figure, "Executors over time", caption, first.workload.label)
    with output_path(path) as temporary:
        temporary.write_bytes(style.image(figure, path.suffix[1:]))
