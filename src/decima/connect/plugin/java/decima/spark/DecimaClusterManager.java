package decima.spark;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.deploy.LocalSparkCluster;
import org.apache.spark.scheduler.ExternalClusterManager;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.TaskScheduler;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend;
import scala.runtime.BoxedUnit;

/**
 * Entry point of the plugin: Spark finds it through {@code META-INF/services} and gives it every master URL of ours.
 *
 * <p>{@code spark-decima://HOST:PORT[,HOST:PORT]} is a standalone master, {@code
 * spark-decima-local-cluster[WORKERS,CORES,MEMORY_MB]} starts a small one inside the driver. The names begin with
 * "spark" because spark-submit refuses masters that do not.
 */
public final class DecimaClusterManager implements ExternalClusterManager {
  private static final String STANDALONE = "spark-decima://";
  private static final Pattern LOCAL_CLUSTER =
      Pattern.compile("spark-decima-local-cluster\\[\\s*(\\d+)\\s*,\\s*(\\d+)\\s*,\\s*(\\d+)\\s*]");

  @Override
  public boolean canCreate(String masterUrl) {
    return masterUrl.startsWith(STANDALONE) || LOCAL_CLUSTER.matcher(masterUrl).matches();
  }

  @Override
  public TaskScheduler createTaskScheduler(SparkContext context, String masterUrl) {
    return new DecimaTaskScheduler(context);
  }

  @Override
  public SchedulerBackend createSchedulerBackend(SparkContext context, String masterUrl, TaskScheduler scheduler) {
    TaskSchedulerImpl tasks = (TaskSchedulerImpl) scheduler;
    Matcher local = LOCAL_CLUSTER.matcher(masterUrl);
    if (!local.matches()) {
      return new DecimaSchedulerBackend(tasks, context, standaloneMasters(masterUrl));
    }
    LocalSparkCluster cluster =
        LocalSparkCluster.apply(
            Integer.parseInt(local.group(1)),
            Integer.parseInt(local.group(2)),
            Integer.parseInt(local.group(3)),
            context.conf());
    DecimaSchedulerBackend backend = new DecimaSchedulerBackend(tasks, context, cluster.start());
    backend.shutdownCallback_$eq(
        (StandaloneSchedulerBackend stopped) -> {
          cluster.stop();
          return BoxedUnit.UNIT;
        });
    return backend;
  }

  @Override
  public void initialize(TaskScheduler scheduler, SchedulerBackend backend) {
    ((TaskSchedulerImpl) scheduler).initialize(backend);
  }

  private static String[] standaloneMasters(String masterUrl) {
    String[] addresses = masterUrl.substring(STANDALONE.length()).split(",");
    for (int i = 0; i < addresses.length; i++) {
      addresses[i] = "spark://" + addresses[i].trim();
    }
    return addresses;
  }
}
