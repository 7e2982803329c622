package decima.spark;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.JavaConverters;

/**
 * Moves executors between the applications of one standalone master (section 6.1, Figure 8). An unmodified master
 * cannot be told where an executor goes; so each driver reports to the service and asks the master for as many
 * executors as the service commands. What the service takes away is killed here when idle and started anew by the
 * master elsewhere.
 */
final class SharedDriver {
  private static final Logger LOG = LoggerFactory.getLogger(SharedDriver.class);
  private static final long PERIOD_MS = 100;
  private static final int DEFAULT_PROFILE = 0;

  private final DecimaTaskScheduler scheduler;
  private final DecimaSchedulerBackend backend;
  private final ScheduledExecutorService thread =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread daemon = new Thread(task, "decima-executors");
            daemon.setDaemon(true);
            return daemon;
          });

  /** Told to go, but Spark has not said yet that they are gone. */
  private final Set<String> killed = new HashSet<>();

  private int requested;
  private long obeyed = -1;
  private boolean failureLogged;

  SharedDriver(DecimaTaskScheduler scheduler, DecimaSchedulerBackend backend) {
    this.scheduler = scheduler;
    this.backend = backend;
  }

  void start() {
    thread.scheduleWithFixedDelay(this::step, 0, PERIOD_MS, TimeUnit.MILLISECONDS);
  }

  void stop() {
    thread.shutdownNow();
  }

  private void step() {
    try {
      scheduler.report();
      boolean usable = scheduler.link().isUsable();
      GrpcAdvisor.Command command = usable ? scheduler.link().command() : null;
      if (scheduler.link().isClosed() || (usable && command == null)) {
        return; // the driver is ending, or a session is just being opened
      }
      int target = usable ? command.target() : withoutService();
      request(target);
      release(target);
      if (usable && command.number() != obeyed) {
        obeyed = command.number();
        if (command.ask()) {
          backend.reviveOffers();
        }
      }
    } catch (RuntimeException wrong) {
      // An exception would end the periodic task silently, and with it every further move.
      if (!failureLogged && !thread.isShutdown()) {
        failureLogged = true;
        LOG.warn("Decima: executors could not be moved ({}); trying again", wrong.toString());
      }
    }
  }

  /** As without the plugin: every executor the master has. */
  private int withoutService() {
    return scheduler.settings().clusterExecutors().orElse(Integer.MAX_VALUE);
  }

  private void request(int target) {
    if (target != requested) {
      backend.requestTotalExecutors(
          forDefaultProfile((Object) target),
          forDefaultProfile((Object) 0),
          forDefaultProfile(scala.collection.immutable.Map$.MODULE$.<String, Object>empty()));
      requested = target;
      LOG.info("Decima: asked the master for {} executors in all", target);
    }
  }

  private void release(int target) {
    Set<String> leaving = scheduler.releaseDownTo(target);
    killed.retainAll(leaving);
    List<String> idle = leaving.stream().filter(id -> !killed.contains(id)).sorted().toList();
    if (idle.isEmpty()) {
      return;
    }
    // Not by force: an executor that Spark gave a task by itself stays. The target of the master is lowered already.
    Set<String> going =
        Set.copyOf(
            JavaConverters.seqAsJavaList(
                backend.killExecutors(JavaConverters.asScalaBuffer(idle).toSeq(), false, false, false)));
    killed.addAll(going);
    idle.stream().filter(id -> !going.contains(id)).forEach(scheduler::keep);
    LOG.info("Decima: released executors {}", going);
  }

  private static <V> scala.collection.immutable.Map<Object, V> forDefaultProfile(V value) {
    return scala.collection.immutable.Map$.MODULE$.<Object, V>empty().updated(DEFAULT_PROFILE, value);
  }
}
