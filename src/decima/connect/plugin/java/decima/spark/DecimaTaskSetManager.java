package decima.spark;

import org.apache.spark.TaskNotSerializableException;
import org.apache.spark.scheduler.DirectTaskResult;
import org.apache.spark.scheduler.TaskDescription;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.scheduler.TaskSetManager;
import org.apache.spark.util.Clock;
import scala.Enumeration;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Map;
import scala.math.BigDecimal;

/** Tasks of one stage attempt; refuses executors that are not bound to the stage. This is the point of control. */
final class DecimaTaskSetManager extends TaskSetManager {
  private final DecimaTaskScheduler scheduler;

  /** The stage, or null when Spark schedules this task set by itself (barrier, own resource profile, ...). */
  private final StageState stage;

  DecimaTaskSetManager(
      DecimaTaskScheduler scheduler, TaskSet taskSet, int maxTaskFailures, StageState stage, Clock clock) {
    super(scheduler, taskSet, maxTaskFailures, scheduler.healthTrackerOpt(), clock);
    this.scheduler = scheduler;
    this.stage = stage;
  }

  StageState stage() {
    return stage;
  }

  @Override
  public Tuple3<Option<TaskDescription>, Object, Object> resourceOffer(
      String executorId,
      String host,
      Enumeration.Value maxLocality,
      BigDecimal taskCpus,
      Map<String, Map<String, Object>> taskResources)
      throws TaskNotSerializableException {
    if (stage != null && !scheduler.mayLaunch(executorId, stage)) {
      return new Tuple3<>(Option.empty(), false, -1);
    }
    Tuple3<Option<TaskDescription>, Object, Object> launched =
        super.resourceOffer(executorId, host, maxLocality, taskCpus, taskResources);
    // A barrier stage gives null here: its tasks are made when all have their slots.
    if (launched._1().isDefined() && launched._1().get() != null) {
      scheduler.launched(launched._1().get().taskId(), executorId, stage);
    }
    return launched;
  }

  @Override
  public void handleSuccessfulTask(long taskId, DirectTaskResult<?> result) {
    super.handleSuccessfulTask(taskId, result);
    Option<TaskInfo> info = taskInfos().get(taskId);
    if (stage != null && info.isDefined() && info.get().finished()) {
      stage.taskSucceeded(info.get().duration());
    }
  }
}
