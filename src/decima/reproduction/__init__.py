"""Papers reproduced: an experiment per module, the tables and figures they make, and the pipeline over all of them.

Notebooks need four names: ``load`` gives the tables of an experiment, ``figure`` draws from them, ``Run`` says what the
run consists of, ``against_paper`` sets our numbers beside the paper's.
"""

from decima.reproduction.against_paper import against_paper
from decima.reproduction.captions import Run
from decima.reproduction.figures import figure
from decima.reproduction.tables import load

__all__ = ["Run", "against_paper", "figure", "load"]
