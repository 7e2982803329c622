package decima.spark;

import org.apache.spark.scheduler.DirectTaskResult;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.util.Clock;
import scala.Option;

/** Tasks of one stage attempt; refuses executors that are not bound to the stage. This is the point of control. */
final class DecimaTaskSetManager extends VersionedTaskSetManager {
  private final DecimaTaskScheduler scheduler;

  /** The stage, or null when Spark schedules this task set by itself (barrier, own resource profile, ...). */
  private final StageState stage;

  DecimaTaskSetManager(
      DecimaTaskScheduler scheduler, TaskSet taskSet, int maxTaskFailures, StageState stage, Clock clock) {
    super(scheduler, taskSet, maxTaskFailures, clock);
    this.scheduler = scheduler;
    this.stage = stage;
  }

  StageState stage() {
    return stage;
  }

  @Override
  boolean mayLaunch(String executorId) {
    return stage == null || scheduler.mayLaunch(executorId, stage);
  }

  @Override
  void launched(long taskId, String executorId) {
    scheduler.launched(taskId, executorId, stage);
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
