package decima.spark;

import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend;

/** Connection to the standalone master; a driver of a shared cluster starts without executors. */
final class DecimaSchedulerBackend extends StandaloneSchedulerBackend {
  private static final String DYNAMIC = "spark.dynamicAllocation.enabled";
  private static final String CORES = "spark.executor.cores";
  private static final String TASK_CPUS = "spark.task.cpus";

  private final DecimaTaskScheduler scheduler;
  private final SparkConf settings;
  private SharedDriver driver;

  DecimaSchedulerBackend(TaskSchedulerImpl scheduler, SparkContext context, String[] masters) {
    super(scheduler, context, masters);
    this.scheduler = (DecimaTaskScheduler) scheduler;
    this.settings = context.conf();
  }

  @Override
  public void start() {
    if (!scheduler.settings().isShared()) {
      super.start();
      return;
    }
    if (settings.getBoolean(DYNAMIC, false)) {
      throw new IllegalArgumentException(DYNAMIC + " and spark.decima.shared exclude each other: both move executors");
    }
    settings.setIfMissing(CORES, settings.get(TASK_CPUS, "1"));
    if (!settings.get(CORES).equals(settings.get(TASK_CPUS, "1"))) {
      throw new IllegalArgumentException(
          "with spark.decima.shared an executor runs one task at a time: " + CORES + " must equal " + TASK_CPUS);
    }
    // An application of the standalone master starts with an executor limit of 0 only if allocation looks dynamic.
    // Spark's own allocation manager is created after this method, when the setting is as the user left it.
    boolean given = settings.contains(DYNAMIC);
    settings.set(DYNAMIC, "true");
    try {
      super.start();
    } finally {
      if (given) {
        settings.set(DYNAMIC, "false");
      } else {
        settings.remove(DYNAMIC);
      }
    }
    driver = new SharedDriver(scheduler, this);
    driver.start();
  }

  @Override
  public void stop() {
    if (driver != null) {
      driver.stop();
    }
    super.stop();
  }
}
