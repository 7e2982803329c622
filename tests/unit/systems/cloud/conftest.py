import pytest

from decima.core import config
from decima.systems.cloud import sources

NO_TRACES = f"no cloud-vm traces: set {config.MIRROR_VARIABLE}, or run 'decima data fetch cloud-vm'"


@pytest.fixture(scope="module")  # not for longer: TPC-H has a data root of its own
def published(tmp_path_factory):
    """Data root with the published traces, from the mirror if there is one; skipped where neither has them."""
    with pytest.MonkeyPatch.context() as patch:
        mirror = config.mirror_dir()
        if mirror is not None and (mirror / "cloud_vm" / "jobs.csv").is_file():
            patch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path_factory.mktemp("data")))
            sources.fetch_traces()
        elif not sources.traces_available():
            pytest.skip(NO_TRACES)
        yield config.data_root()
