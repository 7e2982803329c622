"""Which edits compile which kernels anew."""

import pytest

from decima.core import cache, config
from decima.core.cache import cache_key, cached, import_closure


def closure(**sources):
    return import_closure("decima.a", lambda name: sources.get(name.removeprefix("decima.").replace(".", "_"), ""))


def test_closure_follows_imports_of_the_package_at_the_top_of_a_module():
    found = closure(
        a="import numpy\nfrom decima.b import (\n    one,\n    two,\n)\nimport decima.c\n",
        b="from decima.d import e\n",
        c="def later():\n    from decima.f import g\n",
        d="",
        d_e="NUMBER = 1\n",
        f="from decima.a import one\n",
    )
    assert found == {"decima.a", "decima.b", "decima.c", "decima.d.e"}


def test_closure_ends_where_modules_import_each_other():
    assert closure(a="from decima.b import x\n", b="from decima.a import y\n") == {"decima.a", "decima.b"}


@pytest.mark.parametrize(
    ("edited", "compiled_anew"),
    [
        ("decima.systems.spark.policy.features", {"decima.systems.spark.policy.kernel.inference"}),
        ("decima.systems.spark.schedulers.sharing", {"decima.systems.spark.schedulers.baselines"}),
        ("decima.systems.spark.schedulers.packing", set()),
        (
            "decima.systems.spark.rules.pools",
            {"decima.systems.spark.engine", "decima.systems.spark.optimum.exhaustive"},
        ),
        ("decima.systems.spark.optimum.exhaustive", {"decima.systems.spark.optimum.exhaustive"}),
    ],
)
def test_an_edit_compiles_anew_what_depends_on_it_and_nothing_else(edited, compiled_anew, monkeypatch):
    systems = (
        "decima.systems.spark.engine",
        "decima.systems.spark.schedulers.baselines",
        "decima.systems.spark.policy.kernel.inference",
        "decima.systems.spark.optimum.exhaustive",
    )
    before = {name: cache_key.__wrapped__(name) for name in systems}
    read = cache._read
    monkeypatch.setattr(cache, "_read", lambda name: read(name) + ("# edited\n" if name == edited else ""))
    changed = {name for name in systems if cache_key.__wrapped__(name) != before[name]}
    assert changed == compiled_anew


def test_functions_from_elsewhere_depend_on_the_whole_package(monkeypatch):
    before = cache_key.__wrapped__("__main__")
    read = cache._read
    monkeypatch.setattr(cache, "_read", lambda name: read(name) + ("# edited\n" if name == "decima.cli" else ""))
    assert cache_key.__wrapped__("__main__") != before


def test_the_cache_lies_in_a_folder_of_the_key(monkeypatch, tmp_path):
    import numba

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    before = numba.config.CACHE_DIR
    seen = []
    cached(lambda function: seen.append(numba.config.CACHE_DIR))(closure)
    assert seen == [str(tmp_path / f"kernels-{cache_key(__name__)}")]
    assert before == numba.config.CACHE_DIR


def test_where_nothing_can_be_kept_the_cache_ends_with_the_process(monkeypatch, tmp_path):
    import numba

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    before = numba.config.CACHE_DIR
    seen = []
    with pytest.warns(RuntimeWarning, match=r"compiled code cannot be kept in .*/cache \(Not a directory\)"):
        cached(lambda function: seen.append(numba.config.CACHE_DIR))(closure)
    cached(lambda function: seen.append(numba.config.CACHE_DIR))(closure)  # says so once
    assert seen[0] == seen[1] == str(config._KEPT[-1].name + f"/kernels-{cache_key(__name__)}")
    assert before == numba.config.CACHE_DIR
