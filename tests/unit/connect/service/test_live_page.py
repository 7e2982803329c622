"""The live page in a browser: what it shows of sessions and decisions."""

import time

from decima.connect.service.client import ClientSession, ServiceClient
from decima.connect.service.metrics import add_up
from tests.services import running, sessions_of
from tests.unit.connect.service.test_server import full_request, open_request

NAME = "<b>me</b>"  # clients choose their names


def rows(browser, table):
    """Texts of the cells of a table, row by row; taken at once, since the page renews them."""
    script = "return [...document.querySelectorAll(arguments[0] + ' tr')].map(r => [...r.cells].map(c => c.innerText))"
    return browser.execute_script(script, f"#{table}")


def test_sessions_jobs_and_decisions_are_shown(browser):
    with running(sessions_of("fifo"), metrics_port=0, live=True) as service, ServiceClient(service.target) as client:
        ClientSession(client, open_request(client=NAME)).decide(full_request)
        browser.get(f"http://127.0.0.1:{service.metrics_port}/live")
        end = time.monotonic() + 30
        while len(rows(browser, "last")) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        session, shown, scheduler, executors, jobs, _ = rows(browser, "sessions")[1]
        assert (shown, scheduler, executors, jobs) == (NAME, "fifo", "4", "1")
        assert rows(browser, "jobs")[1:] == [[session, "j", "1", "0", "0", "0", "0"]]
        assert rows(browser, "last")[1][1:8] == [session, "fifo", "stage", "j", "0", "2", "2"]
        assert "1 sessions, 1 decisions" in browser.find_element("id", "numbers").text
    assert [
        entry for entry in browser.get_log("browser") if "CSP" in entry["message"] or "Error" in entry["message"]
    ] == []


def test_metrics_of_several_processes_are_added_up():
    """Numbers are added, build information is not; the sum is read like each of them."""
    services = []
    for calls in (2, 3):
        with running(sessions_of("fifo")) as service, ServiceClient(service.target) as client:
            for _ in range(calls):
                ClientSession(client, open_request()).decide(full_request)
            services.append(service)
    lines = add_up([service.metrics.text().decode() for service in services]).decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['decima_calls_total{code="OK",method="Open"}'] == "5.0"
    assert values['decima_call_seconds_count{method="Open"}'] == "5.0"
    assert values["decima_sessions"] == "5.0"
    assert [value for name, value in values.items() if name.startswith("decima_build_info")] == ["1.0"]
    assert not any("_created" in line for line in lines)
