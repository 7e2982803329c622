package decima.spark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.deploy.LocalSparkCluster;
import org.apache.spark.scheduler.ExternalClusterManager;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.TaskScheduler;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.runtime.BoxedUnit;

/**
 * Entry point of the plugin: Spark finds it through {@code META-INF/services} and gives it every master URL of ours.
 *
 * <p>{@code spark-decima://HOST:PORT[,HOST:PORT]} is a standalone master, {@code
 * spark-decima-local-cluster[WORKERS,CORES,MEMORY_MB]} starts a small one inside the driver. The names begin with
 * "spark" because spark-submit refuses masters that do not.
 *
 * <p>A jar that was compiled for another Spark says so once and leaves all to Spark. This class therefore uses only what has
 * been the same in all of them; what has not is loaded by {@link DecimaTaskScheduler}.
 */
public final class DecimaClusterManager implements ExternalClusterManager {
  private static final Logger LOG = LoggerFactory.getLogger(DecimaClusterManager.class);

  /** A line with the release that this jar was compiled for, such as 4.3. */
  private static final String RELEASE = "spark-release";

  private static final String STANDALONE = "spark-decima://";
  private static final Pattern LOCAL_CLUSTER =
      Pattern.compile("spark-decima-local-cluster\\[\\s*(\\d+)\\s*,\\s*(\\d+)\\s*,\\s*(\\d+)\\s*]");

  @Override
  public boolean canCreate(String masterUrl) {
    return masterUrl.startsWith(STANDALONE) || LOCAL_CLUSTER.matcher(masterUrl).matches();
  }

  @Override
  public TaskScheduler createTaskScheduler(SparkContext context, String masterUrl) {
    String release = release();
    if (context.version().startsWith(release + ".")) {
      try {
        return new DecimaTaskScheduler(context);
      } catch (LinkageError wrong) {
        LOG.debug("cause", wrong); // a build of this release with other private classes
      }
    }
    LOG.warn(
        "Decima: this jar is compiled for Spark {} and does not fit this Spark {}; Spark schedules by itself "
            + "(decima spark plugin compiles one that fits)",
        release,
        context.version());
    return new TaskSchedulerImpl(context);
  }

  @Override
  public SchedulerBackend createSchedulerBackend(SparkContext context, String masterUrl, TaskScheduler scheduler) {
    TaskSchedulerImpl tasks = (TaskSchedulerImpl) scheduler;
    Matcher local = LOCAL_CLUSTER.matcher(masterUrl);
    if (!local.matches()) {
      return backend(tasks, context, standaloneMasters(masterUrl));
    }
    LocalSparkCluster cluster =
        LocalSparkCluster.apply(
            Integer.parseInt(local.group(1)),
            Integer.parseInt(local.group(2)),
            Integer.parseInt(local.group(3)),
            context.conf());
    StandaloneSchedulerBackend backend = backend(tasks, context, cluster.start());
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

  private static StandaloneSchedulerBackend backend(TaskSchedulerImpl tasks, SparkContext context, String[] masters) {
    return tasks.getClass() == TaskSchedulerImpl.class
        ? new StandaloneSchedulerBackend(tasks, context, masters)
        : new DecimaSchedulerBackend(tasks, context, masters);
  }

  private static String release() {
    try (InputStream stream = DecimaClusterManager.class.getResourceAsStream(RELEASE)) {
      return stream == null ? "unknown" : new String(stream.readAllBytes(), StandardCharsets.UTF_8).strip();
    } catch (IOException wrong) {
      return "unknown";
    }
  }

  private static String[] standaloneMasters(String masterUrl) {
    String[] addresses = masterUrl.substring(STANDALONE.length()).split(",");
    for (int i = 0; i < addresses.length; i++) {
      addresses[i] = "spark://" + addresses[i].trim();
    }
    return addresses;
  }
}
