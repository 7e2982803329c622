package decima.spark;

import org.apache.spark.TaskNotSerializableException;
import org.apache.spark.scheduler.TaskDescription;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.scheduler.TaskSetManager;
import org.apache.spark.util.Clock;
import scala.Enumeration;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Map;
import scala.math.BigDecimal;

/** The part of a task set's manager whose types differ between Spark's versions. */
abstract class VersionedTaskSetManager extends TaskSetManager {
  VersionedTaskSetManager(TaskSchedulerImpl scheduler, TaskSet taskSet, int maxTaskFailures, Clock clock) {
    super(scheduler, taskSet, maxTaskFailures, scheduler.healthTrackerOpt(), clock);
  }

  /** Whether an executor may start a task. */
  abstract boolean mayLaunch(String executorId);

  /** An executor is about to start a task. */
  abstract void launched(long taskId, String executorId);

  @Override
  public Tuple3<Option<TaskDescription>, Object, Object> resourceOffer(
      String executorId,
      String host,
      Enumeration.Value maxLocality,
      BigDecimal taskCpus,
      Map<String, Map<String, Object>> taskResources)
      throws TaskNotSerializableException {
    if (!mayLaunch(executorId)) {
      return new Tuple3<>(Option.empty(), false, -1);
    }
    Tuple3<Option<TaskDescription>, Object, Object> launched =
        super.resourceOffer(executorId, host, maxLocality, taskCpus, taskResources);
    // A barrier stage gives null here: its tasks are made when all have their slots.
    if (launched._1().isDefined() && launched._1().get() != null) {
      launched(launched._1().get().taskId(), executorId);
    }
    return launched;
  }
}
