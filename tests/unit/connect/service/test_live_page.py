"""The live page in a browser: what it shows of sessions and decisions."""

import time

from decima.connect.service.client import ClientSession, ServiceClient
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
