"""Write the event logs of this folder anew with the installed Spark (about five minutes).

    python tests/unit/connect/logs/make_logs.py [NAME...]

Each log is written by Spark as plain text; paths and the settings of the machine are taken out; then it is compressed,
where its name says so, by the classes with which Spark compresses its logs. Nothing else is changed.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATHS = re.compile(rb"/(?:[\w.+-]+/)+")
KEPT = ("spark.sql.adaptive.enabled", "spark.task.cpus", "spark.master", "spark.speculation", "spark.app.name")
CLUSTER = "spark://127.0.0.1:17077"  # started below: two workers of one core on two loopback addresses
NO_AQE = {"spark.sql.adaptive.enabled": "false", "spark.sql.autoBroadcastJoinThreshold": "-1"}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "100ms",
}
# name -> (master, settings, what to run)
LOGS = {
    "plain": ("local[2]", NO_AQE, "scan"),
    "queries.zstd": ("local[2]", NO_AQE, "queries"),
    "adaptive.zstd": ("local[2]", {"spark.sql.autoBroadcastJoinThreshold": "-1"}, "queries"),
    "broadcast.lz4": ("local[2]", {}, "queries"),
    "unnamed.snappy": ("local[2,4]", {}, "unnamed"),
    "failed-task.zstd": ("local[2,4]", NO_AQE, "failed_task"),
    "speculation.zstd": (CLUSTER, SPECULATION, "slow_task"),
    "killed-executor.zstd": (CLUSTER, NO_AQE, "killed_executor"),
}

JOIN = (
    "select g.name, sum(f.v) s from facts f join dims d on f.d = d.id join groups g on d.g = g.id "
    "group by g.name order by s desc limit 5"
)
SUBQUERY = "select k, sum(v) s from facts group by k having sum(v) > (select avg(v) * 10 from facts) order by s limit 9"
SCAN = "select count(*), sum(v) from facts where v < 500"
QUERIES = {"join": JOIN, "subquery": SUBQUERY, "scan": SCAN}


def main() -> None:
    for name in sys.argv[1:] or LOGS:
        master, settings, work = LOGS[name]
        with tempfile.TemporaryDirectory() as folder:
            options = {"master": master, "settings": settings, "work": work, "folder": folder, "name": name}
            with cluster(folder) if master == CLUSTER else contextlib.nullcontext():
                subprocess.run([sys.executable, __file__, "--run", json.dumps(options)], check=True)


@contextlib.contextmanager
def cluster(folder: str):
    """Speculative tasks go to other hosts only, so each worker has an address of its own."""
    import pyspark

    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    commands = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "17077", "--webui-port", "0"]]
    for host in ("127.0.0.2", "127.0.0.3"):
        worker = [f"{deploy}.worker.Worker", "--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        commands.append([*worker, "--work-dir", f"{folder}/{host}", CLUSTER])
    environment = os.environ | {"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1"}
    processes = [subprocess.Popen([spark_class, *command], env=environment) for command in commands]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def run(options: dict) -> None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    logs = Path(options["folder"]) / "logs"
    logs.mkdir()
    builder = SparkSession.builder.master(options["master"]).appName(options["name"].partition(".")[0])
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(logs),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.executor.memory": "512m",
        **options["settings"],
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    WORK[options["work"]](spark)
    codec = options["name"].partition(".")[2]
    jvm, conf = spark.sparkContext._jvm, spark.sparkContext._jsc.sc().conf()
    spark.stop()  # the log is complete then; the Java process goes on
    log = next(path for path in logs.iterdir() if not path.name.startswith("."))
    content = b"".join(map(clean, log.read_bytes().splitlines(True)))
    target = HERE / options["name"]
    if codec:
        stream = jvm.org.apache.spark.io.CompressionCodec.createCodec(conf, codec).compressedOutputStream(
            jvm.java.io.FileOutputStream(str(target))
        )
        for begin in range(0, len(content), 2**16):
            stream.write(content[begin : begin + 2**16])
        stream.close()
    else:
        target.write_bytes(content)


def clean(line: bytes) -> bytes:
    if line.startswith(b'{"Event":"SparkListenerEnvironmentUpdate"'):
        event = json.loads(line)
        kept = {name: value for name, value in event["Spark Properties"].items() if name in KEPT}
        event = {name: {} if isinstance(value, dict) else value for name, value in event.items()}
        return json.dumps(event | {"Spark Properties": kept}, separators=(",", ":")).encode() + b"\n"
    return PATHS.sub(b"", line)


def scan(spark) -> None:
    spark.range(1000).selectExpr("sum(id)").collect()


def queries(spark) -> None:
    spark.range(20000).selectExpr("id % 97 k", "id % 50 d", "id % 1000 v").createOrReplaceTempView("facts")
    spark.range(50).selectExpr("id", "id % 7 g").createOrReplaceTempView("dims")
    spark.range(7).selectExpr("id", "concat('group ', id) name").createOrReplaceTempView("groups")
    for repetition in range(2):
        for name, text in QUERIES.items():
            spark.sparkContext.setLocalProperty("decima.query", f"{name}#{repetition}")
            spark.sparkContext.setLocalProperty("decima.profile", name)
            spark.sql(text).collect()


def unnamed(spark) -> None:
    spark.range(1000).selectExpr("sum(id)").collect()
    context = spark.sparkContext
    context.setJobGroup("night", "nightly count")
    pairs = context.parallelize(range(100), 3).map(lambda x: (x % 5, x)).cache()
    pairs.reduceByKey(lambda a, b: a + b, 2).count()
    pairs.groupByKey(2).count()


def failed_task(spark) -> None:
    def fail_once(index, rows):
        from pyspark import TaskContext

        if index == 1 and TaskContext.get().attemptNumber() == 0:
            raise ValueError("fails once")
        return rows

    def fail(index, rows):
        raise ValueError("fails always")

    context = spark.sparkContext
    context.setLocalProperty("decima.query", "retry#0")
    context.parallelize(range(30), 3).mapPartitionsWithIndex(fail_once).map(lambda x: (x % 3, x)).groupByKey(2).count()
    context.setLocalProperty("decima.query", "broken#0")
    with contextlib.suppress(Exception):  # raised again by the driver
        context.parallelize(range(30), 3).mapPartitionsWithIndex(fail).count()


def slow_task(spark) -> None:
    def sleep(index, rows):
        from pyspark import TaskContext

        time.sleep(30 if index == 0 and TaskContext.get().attemptNumber() == 0 else 0.3)
        return rows

    spark.sparkContext.setLocalProperty("decima.query", "slow#0")
    spark.sparkContext.parallelize(range(80), 8).mapPartitionsWithIndex(sleep).count()
    time.sleep(40)  # until the slow copy is killed


def killed_executor(spark) -> None:
    def kill(index, rows):
        import os
        import signal

        if index == 0 and not os.path.exists(flag):
            open(flag, "w").close()
            with open(f"/proc/{os.getppid()}/stat") as status:
                executor = int(status.read().rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)  # the parent of the parent of this Python worker
        return rows

    context = spark.sparkContext
    flag = context.getConf().get("spark.eventLog.dir") + "/.killed"
    context.setLocalProperty("decima.query", "killed#0")
    pairs = context.parallelize(range(400), 6).map(lambda x: (x % 40, x)).groupByKey(4)
    pairs.mapPartitionsWithIndex(kill).count()
    context.setLocalProperty("decima.query", "after#0")
    pairs.count()


WORK = {
    "scan": scan,
    "queries": queries,
    "unnamed": unnamed,
    "failed_task": failed_task,
    "slow_task": slow_task,
    "killed_executor": killed_executor,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(json.loads(sys.argv[2]))
    else:
        main()
