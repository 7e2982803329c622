"""Schedules as pages to explore: what is in them, and what a browser shows under the pointer."""

import html
import re

import numpy as np
import pandas
import pytest
from selenium.webdriver.common.action_chains import ActionChains

import decima
from decima.core.errors import ConfigError
from decima.plotting import style
from decima.plotting.explorer import explore
from decima.plotting.gantt import job_colors
from decima.workload import Job, JobProfile, Stage, Workload
from tests.toy_system import MachineSettings, Orders, SingleMachine

# The first chart of a page, and all models of a name.
FIND = """
const find = (view) => view.model.name === "gantt 0" ? view : (view.child_views ?? []).map(find).find((each) => each)
const chart = [...Bokeh.index].map(find).find((each) => each)
const named = (name) => [...Bokeh.documents[0].all_models].filter((model) => model.name === name)
"""
DRAWN = "if (!window.Bokeh?.documents.length) return false" + FIND + "return chart?.frame.bbox.width > 0"
PLACE = """
const box = chart.el.getBoundingClientRect()
return [box.left + chart.frame.x_scale.compute(arguments[0]), box.top + chart.frame.y_scale.compute(arguments[1])]
"""
# Texts beside the pointer, which stand in trees of their own.
TOOLTIPS = """
const texts = []
const walk = (root) => {
  for (const element of root.querySelectorAll("*")) {
    if (element.className === "bk-tooltip-content" && element.innerText) texts.push(element.innerText)
    if (element.shadowRoot) walk(element.shadowRoot)
  }
}
walk(document)
return texts
"""


def profile(name, *stages):
    made = []
    for index, (tasks, duration_ms, parents) in enumerate(stages):
        values = (np.array([float(duration_ms)]),)
        made.append(Stage(f"stage {index}", tasks, parents, (1,), values, values, values))
    return JobProfile(name, tuple(made), "test")


def workload():
    """A diamond on two executors at once, and a job that comes when all is done."""
    report = profile("report", (2, 1000, ()), (1, 3000, ()), (1, 500, (0, 1)))
    late = profile("late", (1, 1000, ()))
    return Workload((Job(report), Job(late, arrival_ms=20_000.0)), "two <jobs>")


class Waiting:
    """Delays every stage that can be delayed by 2 s and then by 3 s, which overlap if two stages are delayed."""

    name = "waiting"

    def reset(self, rng):
        self.number = 0

    def decide(self, observation):
        stage = observation.frontier[0]
        if not stage.delayable:
            return observation.grant(stage, 1)
        self.number += 1
        return decima.systems.spark.schedulers.Decision(stage, delay_ms=1000.0 + 1000.0 * self.number)


def run(scheduler="fair", jobs=None, **settings):
    return decima.simulate(jobs or workload(), scheduler, executors=2, durations="mean", log=True, **settings)


class TestPage:
    def test_holds_the_library_and_asks_for_nothing(self, tmp_path):
        explore(run()).save(tmp_path / "schedule.html")
        page = (tmp_path / "schedule.html").read_text(encoding="utf-8")
        assert "<title>two &lt;jobs&gt;: fair</title>" in page
        elements = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
        assert "<script" in elements
        assert re.findall(r"\b(?:src|href)=", elements) == []
        assert len(page) < 3_000_000

    def test_a_notebook_shows_it_in_a_frame_of_its_own(self):
        shown = explore(run())._repr_html_()
        assert shown.startswith("<iframe srcdoc=")
        assert shown.count("<iframe") == 1

    def test_the_wheel_scrolls_the_notebook_and_zooms_a_page_of_its_own(self):
        made = explore(run())
        held = '"modifiers":{"type":"map","entries":[["ctrl",true]]}'
        assert html.unescape(made._repr_html_()).count(held) == 4  # two of the chart, one each of job counts and DAG
        assert held not in made.page()

    def test_has_a_chart_per_run_one_time_axis_and_the_colours_of_the_static_chart(self):
        made = explore(run("fair"), run("fifo"))
        first, second = (made.layout.select_one({"name": f"gantt {index}"}) for index in range(2))
        jobs = made.layout.select_one({"name": "jobs in system"})
        assert first.x_range is second.x_range is jobs.x_range
        assert [chart.title.text.partition(":")[0] for chart in (first, second)] == ["fair", "FIFO"]
        colors = first.select_one({"name": "blocks 0"}).glyph.fill_color.transform.palette
        assert colors == job_colors(2)
        assert first.select_one({"name": "idle 0"}).glyph.fill_color == style.IDLE

    def test_no_job_is_renamed_whatever_it_is_called(self):
        """Names that Bokeh draws for elements are UUIDs; those are numbered, so that equal runs give equal pages."""
        name = "3f2b8c1e-1111-4a2b-8c3d-1234567890ab"
        tricky = f'x id="{name}" "docid":"{name}"'
        jobs = Workload((Job(profile(name, (1, 1000, ()))), Job(profile(tricky, (1, 1000, ())))), name)
        made = explore(run(jobs=jobs))
        page = made.page()
        assert f"{name} (job 0)" in page
        assert f'x id=\\"{name}\\" \\"docid\\":\\"{name}\\" (job 1)' in page
        assert f"<title>{name}: fair</title>" in page
        others = set(re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", page)) - {name}
        assert others == set()
        assert page == made.page()

    def test_hover_has_the_tasks_of_the_log_and_when_their_stages_could_start(self):
        result = run()
        chart = explore(result).layout.select_one({"name": "gantt 0"})
        tasks = pandas.DataFrame(chart.select_one({"name": "tasks 0"}).data_source.data)
        log = result.task_frame()
        assert sorted(tasks["left"]) == sorted(log["start_s"])
        assert sorted(zip(tasks["executor"], tasks["right"], strict=True)) == sorted(
            zip(log["executor"], log["finish_s"], strict=True)
        )
        first = tasks[(tasks["stage"] == "0 (stage 0)") & (tasks["job"] == 0)].sort_values("rank")
        assert first["rank"].tolist() == [1, 2]
        assert first["tasks"].tolist() == [2, 2]
        assert first["moved"].tolist() == [2.0, 2.0]
        last = tasks[tasks["stage"] == "2 (stage 2)"].iloc[0]
        assert (last["cause"], last["waited"]) == ("its stage waited for stage 1 (stage 1) until 6.00 s", 0.0)

    def test_idle_time_is_all_between_tasks(self):
        result = run()
        chart = explore(result).layout.select_one({"name": "gantt 0"})
        gaps = pandas.DataFrame(chart.select_one({"name": "gaps 0"}).data_source.data)
        tasks = result.task_frame()
        busy_s = (tasks["finish_s"] - tasks["start_s"]).sum()
        assert (gaps["right"] - gaps["left"]).sum() + busy_s == pytest.approx(2 * tasks["finish_s"].max())

    def test_slots_are_hatched_where_there_are_any_and_those_that_overlap_once(self):
        plain = explore(run()).layout
        assert plain.select_one({"name": "slots 0"}) is None
        assert "withheld" not in plain.select_one({"name": "heading"}).text
        result = run(Waiting())
        ends = result.log.delays()[["start_s", "end_s"]].to_numpy().tolist()
        assert ends == [[0.0, 2.0], [0.0, 3.0], [8.0, 12.0], [20.0, 25.0]]
        made = explore(result).layout
        drawn = made.select_one({"name": "slots 0"})
        assert drawn.data_source.data["left"].tolist() == [0.0, 8.0, 20.0]
        assert drawn.data_source.data["right"].tolist() == [3.0, 12.0, 25.0]
        assert drawn.glyph.hatch_pattern == "right_diagonal_line"
        assert "idle while a stage is withheld" in made.select_one({"name": "heading"}).text

    def test_another_system_is_drawn_without_graphs(self):
        machine, settings = SingleMachine(), MachineSettings()
        state = machine.state(Orders((0.0, 1.0), (2.0, 3.0)), settings)
        machine.run(state, machine.make_scheduler("in_order"), 0)
        made = explore(machine.result(state, "in_order", 0))
        tasks = made.layout.select_one({"name": "tasks 0"}).data_source.data
        assert set(tasks["name"]) == {"job 0 (job 0)", "job 1 (job 1)"}
        assert made.layout.select_one({"name": "dag"}) is None
        assert "srcdoc" in made._repr_html_()

    def test_refuses_what_cannot_be_drawn(self):
        with pytest.raises(ConfigError, match="no run given"):
            explore()
        with pytest.raises(ConfigError, match="kept no log"):
            explore(decima.simulate(workload(), "fair", executors=2))
        with pytest.raises(ConfigError, match="no task was launched"):
            explore(run(time_limit_ms=1.0))
        other = Workload((Job(profile("late", (1, 1000, ()))),), "one job")
        with pytest.raises(ConfigError, match=r"different jobs .*'two <jobs>' and 'one job'"):
            explore(run(), run(jobs=other))


class Page:
    """A page in the browser, and the pointer on its first chart."""

    def __init__(self, browser, path):
        self.browser = browser
        browser.get(path.as_uri())
        browser.wait(lambda _: browser.execute_script(DRAWN))

    def move(self, time_s, executor):
        """Point at an executor and a time; returns the lines of the text beside the pointer."""
        x, y = self.browser.execute_script(FIND + PLACE, time_s, executor)
        actions = ActionChains(self.browser)
        for step in (2, 1, 0):  # as a hand does: along, not out of nowhere
            actions.w3c_actions.pointer_action.move_to_location(round(x), round(y) - step)
        actions.perform()
        (text,) = self.browser.wait(lambda _: self.browser.execute_script(TOOLTIPS))
        return text.splitlines()

    def choose(self, job):
        """Choose a job in the list."""
        self.browser.execute_script(FIND + "named('job')[0].value = arguments[0]", job)

    def shown(self, name):
        """Rows of the source that the first renderer of a name shows."""
        script = FIND + "return [...Bokeh.index.find_one_by_id(named(arguments[0])[0].id).all_indices]"
        return self.browser.execute_script(script, name)


@pytest.fixture(scope="module")
def schedules(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "schedule.html"
    explore(run("fair"), run("fifo")).save(path)
    return path


@pytest.fixture
def page(browser, schedules):
    return Page(browser, schedules)


class TestBrowser:
    """Fair, 2 executors: both move to the report until 2 s, its stages end at 3, 6 and 6.5 s; the late job at 23 s."""

    def test_a_task_under_the_pointer(self, page):
        assert page.move(2.5, 0) == [
            "report (job 0), stage 0 (stage 0), executor 0",
            "task 1 of 2: 2.00 s to 3.00 s (1.00 s)",
            "its job arrived at 0.00 s; it then waited 2.00 s for an executor, 2.00 s of it for the move",
        ]

    def test_a_chosen_job_stands_out_and_shows_its_dag(self, page):
        assert page.shown("stages") == page.shown("chosen 0") == page.shown("veil 0") == []
        page.choose("report (job 0)")
        page.browser.wait(lambda _: page.shown("stages") == [0, 1, 2])
        assert len(page.shown("chosen 0")) == 4
        assert page.shown("veil 0") == [0]
        page.choose("no job")
        page.browser.wait(lambda _: page.shown("chosen 0") == [])

    def test_the_page_complains_of_nothing(self, page):
        messages = [entry["message"] for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert messages == []
        fetched = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
        assert [name for name in page.browser.execute_script(fetched) if name.startswith("http")] == []
