package decima.spark;

import java.util.List;
import org.apache.spark.scheduler.TaskSetManager;

/**
 * One stage of a query as the scheduling service sees it. Guarded by the lock of the task scheduler.
 *
 * <p>A stage outlives its task sets: a retry after a lost shuffle file submits a second, smaller task set.
 */
final class StageState {
  final QueryState query;
  final int id;
  final int tasks;
  List<Integer> parents;

  /** Task set that is being scheduled now, or null before the first and after the last. */
  private TaskSetManager active;

  private boolean started;
  private boolean finished;
  private long finishedNs;
  private long completingNs;
  private long durationMs;
  private int durations;
  private long delayEndMs;
  private boolean withheld;

  StageState(QueryState query, int id, int tasks, List<Integer> parents) {
    this.query = query;
    this.id = id;
    this.tasks = tasks;
    this.parents = parents;
  }

  void started(TaskSetManager manager) {
    active = manager;
    started = true;
    finished = false;
  }

  /** The task set has ended; on failure the stage waits for Spark to submit it again. */
  void ended(TaskSetManager manager) {
    if (active == manager) {
      active = null;
      finished = manager.tasksSuccessful() == manager.numTasks();
      finishedNs = System.nanoTime();
    }
  }

  /**
   * Whether all tasks have ended but Spark has not looked at all results yet.
   *
   * @param onSlots how many tasks still run
   * @param nanoseconds how long that may take; a large result can take longer
   */
  boolean isCompleting(int onSlots, long nanoseconds) {
    if (active == null || active.isZombie() || onSlots > 0 || launchable() > 0) {
      completingNs = 0;
      return false;
    }
    if (completingNs == 0) {
      completingNs = System.nanoTime();
    }
    return System.nanoTime() - completingNs < nanoseconds;
  }

  boolean finishedWithin(long nanoseconds) {
    return finished && System.nanoTime() - finishedNs < nanoseconds;
  }

  /** No slot may serve the stage for a while, although it could run. */
  void withhold(double milliseconds) {
    delayEndMs = (long) Math.min(System.currentTimeMillis() + milliseconds, Long.MAX_VALUE / 2);
    withheld = true;
  }

  /** Whether the stage is withheld now; a delay that is over or was dropped does not come back. */
  boolean isWithheld() {
    withheld = withheld && System.currentTimeMillis() < delayEndMs;
    return withheld;
  }

  /** Ends the delay, if there is one. */
  void release() {
    withheld = false;
  }

  /** When the last delay of the stage ends or ended, 0 if there was none. */
  long delayEndMs() {
    return delayEndMs;
  }

  boolean isStarted() {
    return started;
  }

  void taskSucceeded(long milliseconds) {
    durationMs += milliseconds;
    durations++;
  }

  boolean isFinished() {
    return finished;
  }

  /** Tasks that could start now: not done, no copy running; plus wanted speculative copies. */
  int launchable() {
    if (active == null || active.isZombie()) {
      return 0;
    }
    boolean[] successful = active.successful();
    int[] copies = active.copiesRunning();
    int waiting = active.speculatableTasks().size();
    for (int i = 0; i < successful.length; i++) {
      if (!successful[i] && copies[i] == 0) {
        waiting++;
      }
    }
    return waiting;
  }

  /** Tasks of the whole stage that have not started, also while it still waits for its parents. */
  int waiting() {
    if (finished) {
      return 0;
    }
    return active == null ? tasks : Math.min(tasks, launchable());
  }

  int running() {
    return active == null ? 0 : Math.min(active.runningTasks(), tasks - waiting());
  }

  /** Finished tasks whose durations are in {@link #measuredMs}. */
  int measuredTasks() {
    return durations;
  }

  double measuredMs() {
    return durationMs;
  }

  @Override
  public String toString() {
    return query.id + "/" + id;
  }
}
