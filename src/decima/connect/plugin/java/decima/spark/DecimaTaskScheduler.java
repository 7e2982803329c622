package decima.spark;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskState;
import org.apache.spark.scheduler.ActiveJob;
import org.apache.spark.scheduler.ExecutorLossReason;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.TaskDescription;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.scheduler.TaskSetManager;
import org.apache.spark.scheduler.WorkerOffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Enumeration;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * Spark's task scheduler with the hooks the plugin needs. It only translates: decisions are made in {@link
 * StageControl}. Nothing that goes wrong here may reach Spark, for an exception in submitTasks ends the SparkContext.
 */
final class DecimaTaskScheduler extends VersionedTaskScheduler {
  private static final Logger LOG = LoggerFactory.getLogger(DecimaTaskScheduler.class);

  private final Settings settings;
  private final Metrics metrics;
  private final QueryRegistry queries = new QueryRegistry();
  private final Slots slots = new Slots();
  private final ServiceLink link;
  private final StageControl control;

  /** Stage of each task set that is being submitted or scheduled, by stage id and attempt. */
  private final Map<String, StageState> controlled = new HashMap<>();

  /** Ends of delays; null before the first. */
  private ScheduledExecutorService timers;

  private boolean bugLogged;

  DecimaTaskScheduler(SparkContext context) {
    super(context);
    settings = Settings.read(context.conf());
    metrics = new Metrics(settings.metricsFile(), settings.decisionsFile());
    link = new ServiceLink(new GrpcAdvisor(settings, context.appName()), settings, metrics);
    control = new StageControl(queries, slots, link, metrics, settings, this::offerAfter);
  }

  @Override
  public void start() {
    link.start();
    sc().addSparkListener(
        new SparkListener() {
          @Override
          public void onJobEnd(SparkListenerJobEnd end) {
            sparkJobEnded(end.jobId());
          }
        });
    super.start();
  }

  @Override
  public void stop(int exitCode) {
    // First: what the end of Spark interrupts is no failure of the service.
    link.close();
    synchronized (this) {
      if (timers != null) {
        timers.shutdownNow();
      }
    }
    try {
      super.stop(exitCode);
    } finally {
      metrics.close();
    }
  }

  @Override
  public void submitTasks(TaskSet taskSet) {
    guard("reading the graph of stage " + taskSet.stageId(), () -> register(taskSet));
    super.submitTasks(taskSet);
  }

  private void register(TaskSet taskSet) {
    Option<ActiveJob> job = dagScheduler().jobIdToActiveJob().get(taskSet.priority());
    // Pipelined stages run side by side with their parents; which slots they need is Spark's business.
    if (job.isEmpty() || isPipelined(taskSet) || taskSet.resourceProfileId() != 0) {
      return;
    }
    List<QueryState.Found> graph = QueryRegistry.readGraph(job.get());
    synchronized (this) {
      StageState stage = queries.submitted(taskSet, job.get().finalStage().id(), graph, System.currentTimeMillis());
      if (stage != null) {
        controlled.put(taskSet.id(), stage);
      }
    }
  }

  @Override
  public TaskSetManager createTaskSetManager(TaskSet taskSet, int maxFailures) {
    StageState stage = controlled.get(taskSet.id());
    boolean barrier = taskSet.tasks().length > 0 && taskSet.tasks()[0].isBarrier();
    if (stage == null && !barrier) {
      return super.createTaskSetManager(taskSet, maxFailures);
    }
    DecimaTaskSetManager manager =
        new DecimaTaskSetManager(
            this, taskSet, maxFailures, barrier ? null : stage, TaskSetManager.$lessinit$greater$default$5());
    if (manager.stage() != null) {
      stage.started(manager);
    }
    return manager;
  }

  @Override
  public synchronized void taskSetFinished(TaskSetManager manager) {
    super.taskSetFinished(manager);
    StageState stage = controlled.remove(manager.taskSet().id());
    if (stage != null) {
      guard(
          "ending a stage",
          () -> {
            stage.ended(manager);
            queries.stageEnded(stage, manager.taskSet(), System.currentTimeMillis());
            backend().reviveOffers(); // slots that waited for the results of this stage
          });
    }
  }

  private synchronized void sparkJobEnded(int sparkJob) {
    queries.sparkJobEnded(sparkJob, System.currentTimeMillis());
  }

  @Override
  boolean beforeOffers(List<WorkerOffer> offers) {
    try {
      return control.decideRound(freeSlots(offers), barrierTasks());
    } catch (RuntimeException | LinkageError wrong) {
      bug("deciding about free executors", wrong);
      control.leaveToSpark();
      return false;
    }
  }

  @Override
  void afterOffers(List<TaskDescription> launched, boolean again) {
    boolean[] unused = new boolean[1];
    guard(
        "ending a round of offers",
        () -> {
          // Tasks of barrier stages and of task sets that are not ours show only here.
          launched.forEach(task -> slots.launched(task.taskId(), task.executorId(), null));
          unused[0] = slots.releaseUnused();
        });
    if (again || unused[0]) {
      backend().reviveOffers();
    }
  }

  /** Lets Spark offer its free slots again when the delay of a stage is over. */
  private void offerAfter(long milliseconds) {
    if (timers == null) {
      timers =
          Executors.newSingleThreadScheduledExecutor(
              task -> {
                Thread thread = new Thread(task, "decima-delays");
                thread.setDaemon(true);
                return thread;
              });
    }
    timers.schedule(() -> backend().reviveOffers(), milliseconds, TimeUnit.MILLISECONDS);
  }

  private Map<String, Integer> freeSlots(List<WorkerOffer> offers) {
    double cpus = cpusPerTask();
    Map<String, Integer> free = new LinkedHashMap<>();
    for (WorkerOffer offer : offers) {
      if (offer.resourceProfileId() == 0) {
        free.put(offer.executorId(), (int) Math.floor(cores(offer) / cpus + 1e-9));
      }
    }
    return free;
  }

  /** Tasks of the first barrier stage that waits for its slots, 0 when none does. */
  private int barrierTasks() {
    for (TaskSetManager manager : JavaConverters.seqAsJavaList(rootPool().getSortedTaskSetQueue())) {
      if (manager.isBarrier() && !manager.isZombie() && manager.runningTasks() == 0) {
        return manager.numTasks();
      }
    }
    return 0;
  }

  /** Whether the stage may use the executor in this round. Called while Spark makes its offers. */
  boolean mayLaunch(String executorId, StageState stage) {
    return control.mayLaunch(executorId, stage);
  }

  /** A task is about to start; {@code stage} is null when Spark chose it by itself. */
  void launched(long taskId, String executorId, StageState stage) {
    guard("counting a started task", () -> slots.launched(taskId, executorId, stage));
  }

  @Override
  public synchronized void statusUpdate(long taskId, Enumeration.Value state, ByteBuffer data) {
    Option<String> executor = taskIdToExecutorId().get(taskId);
    if (TaskState.isFinished(state) && executor.isDefined()) {
      guard("counting an ended task", () -> slots.ended(taskId, executor.get()));
    }
    super.statusUpdate(taskId, state, data);
  }

  @Override
  public void executorLost(String executorId, ExecutorLossReason reason) {
    super.executorLost(executorId, reason);
    synchronized (this) {
      guard("forgetting a lost executor", () -> slots.lost(executorId));
    }
  }

  Settings settings() {
    return settings;
  }

  ServiceLink link() {
    return link;
  }

  /** Reports the state of this driver; see {@link StageControl#report}. */
  synchronized void report() {
    guard("reporting to the service", control::report);
  }

  /** See {@link Slots#releaseDownTo}. */
  synchronized Set<String> releaseDownTo(int target) {
    return slots.releaseDownTo(target);
  }

  synchronized void keep(String executorId) {
    slots.keep(executorId);
  }

  private void guard(String where, Runnable step) {
    try {
      step.run();
    } catch (RuntimeException | LinkageError wrong) {
      bug(where, wrong);
    }
  }

  private synchronized void bug(String where, Throwable wrong) {
    if (!bugLogged) {
      bugLogged = true;
      LOG.error("Decima: unexpected error when {}; Spark goes on by itself there (reported once)", where, wrong);
    }
  }
}
