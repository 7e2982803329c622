"""Folders that look like a Spark."""

from decima.connect.plugin.sparks import RELEASES


def spark_folder(folder, version, scala=""):
    """A folder with the jar that says which Spark it is, of the Scala that the release has."""
    release = ".".join(version.split(".")[:2])
    scala = scala or (RELEASES[release].scala if release in RELEASES else "2.13")
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / f"spark-core_{scala}-{version}.jar").write_bytes(b"")
    return folder
