import numpy as np

import experiments
from experiments.tables import against_paper


def test_gap_is_relative_to_the_paper():
    table = against_paper({"FIFO / fair": (2.5, 2.0), "alpha": (-1.0, -1.5), "delay (s)": (2.0, np.float64(2.1))})
    assert table["gap"].to_list() == ["-20 %", "-50 %", "+5 %"]
    assert against_paper({"parameters": (12736, 12736)}).iloc[0].to_list() == ["12,736", "12,736", "+0 %"]
    assert table.loc["FIFO / fair"].to_list() == ["2.5", "2", "-20 %"]


def test_values_without_a_counterpart_have_no_gap():
    table = against_paper({"capped SRW": (None, 0.85), "delay": ("2–3 s", "2 s"), "change": (0, 1.0)})
    assert table["gap"].to_list() == ["–", "–", "–"]
    assert table["paper"].to_list() == ["–", "2–3 s", "0"]


def test_no_module_hides_it():
    assert callable(experiments.against_paper)
    assert callable(experiments.against_paper)
