"""Earlier name of `decima.systems.heterogeneous`; this module goes with version 0.4."""

raise ImportError("decima.systems.unequal is called decima.systems.heterogeneous now")
