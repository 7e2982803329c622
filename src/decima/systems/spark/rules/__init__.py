"""Rules of the cluster as compiled functions over its state.

The event loop is in :mod:`decima.systems.spark.engine`. ``docs/glossary.md`` defines the words.

Source: §3, §5.2, §6.2 of the paper, and the released simulator, whose order of operations is kept so that runs agree
bit for bit.
"""
