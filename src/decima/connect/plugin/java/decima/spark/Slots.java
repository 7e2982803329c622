package decima.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The executors of this driver. Guarded by the lock of the task scheduler.
 *
 * <p>What the paper calls an executor is a slot here: room for one task. An executor with several cores has several,
 * each bound to a stage of its own.
 */
final class Slots {
  /** One executor process. */
  static final class Executor {
    final String id;

    /** What each slot without a task ran last; null entries are slots that have run nothing yet. */
    private final List<StageState> idle = new ArrayList<>();

    /** Stage of each running task; null for tasks that Spark schedules by itself. */
    private final Map<Long, StageState> running = new HashMap<>();

    /** When each running task began, in milliseconds since the epoch. */
    private final Map<Long, Double> sinceMs = new HashMap<>();

    /** Slots promised to a stage in the current round of offers. */
    private final Map<StageState, Integer> bound = new LinkedHashMap<>();

    /** Stages whose tasks Spark would not start here, and until when not to try again (nanoTime). */
    private final Map<StageState, Long> refused = new HashMap<>();

    private Executor(String id) {
      this.id = id;
    }

    boolean isIdle() {
      return running.isEmpty() && bound.isEmpty();
    }

    boolean refuses(StageState stage, long now) {
      Long until = refused.get(stage);
      if (until != null && until - now <= 0) {
        refused.remove(stage);
        until = null;
      }
      return until != null;
    }
  }

  private static final long REFUSAL_NS = 1_000_000_000L;

  private final Map<String, Executor> executors = new LinkedHashMap<>();
  private final Set<String> leaving = new HashSet<>();
  private int running;

  /** Makes the books agree with Spark, which offers {@code free} slots of an executor; returns what they ran last. */
  List<StageState> offered(String executorId, int free) {
    Executor executor = executors.computeIfAbsent(executorId, Executor::new);
    while (executor.idle.size() < free) {
      executor.idle.add(null);
    }
    while (executor.idle.size() > free) {
      executor.idle.remove(executor.idle.size() - 1);
    }
    return new ArrayList<>(executor.idle);
  }

  /** Promises one idle slot, which ran {@code last} before, to a stage for this round. */
  void bind(String executorId, StageState last, StageState stage) {
    Executor executor = executors.get(executorId);
    executor.idle.remove(executor.idle.indexOf(last));
    executor.bound.merge(stage, 1, Integer::sum);
    stage.query.held++;
  }

  /** Whether a task of the stage may start on the executor now. */
  boolean isBound(String executorId, StageState stage) {
    Executor executor = executors.get(executorId);
    return executor != null && executor.bound.containsKey(stage);
  }

  boolean refuses(String executorId, StageState stage, long now) {
    return executors.get(executorId).refuses(stage, now);
  }

  /** A task starts; {@code stage} is null when Spark schedules it by itself. Known tasks are left as they are. */
  void launched(long taskId, String executorId, StageState stage) {
    Executor executor = executors.computeIfAbsent(executorId, Executor::new);
    if (executor.running.containsKey(taskId)) {
      return;
    }
    executor.running.put(taskId, stage);
    executor.sinceMs.put(taskId, (double) System.currentTimeMillis());
    running++;
    if (stage != null && take(executor.bound, stage)) {
      return; // counted as held when it was bound
    }
    if (stage != null) {
      stage.query.held++;
    }
    if (!executor.idle.isEmpty()) {
      executor.idle.remove(executor.idle.size() - 1);
    }
  }

  /** A task has ended, in whatever way. */
  void ended(long taskId, String executorId) {
    Executor executor = executors.get(executorId);
    if (executor == null || !executor.running.containsKey(taskId)) {
      return;
    }
    StageState stage = executor.running.remove(taskId);
    executor.sinceMs.remove(taskId);
    running--;
    if (stage != null) {
      stage.query.held--;
    }
    executor.idle.add(stage);
  }

  /** The executor is gone with all it ran. */
  void lost(String executorId) {
    Executor executor = executors.remove(executorId);
    if (executor == null) {
      return;
    }
    running -= executor.running.size();
    for (StageState stage : executor.running.values()) {
      if (stage != null) {
        stage.query.held--;
      }
    }
    executor.bound.forEach((stage, count) -> stage.query.held -= count);
  }

  /**
   * Ends a round of offers: promises that Spark did not use are void.
   *
   * @return whether there were any; the slots are free again and the stage is not tried there for a second
   */
  boolean releaseUnused() {
    boolean any = false;
    long until = System.nanoTime() + REFUSAL_NS;
    for (Executor executor : executors.values()) {
      for (Map.Entry<StageState, Integer> unused : executor.bound.entrySet()) {
        any = true;
        StageState stage = unused.getKey();
        stage.query.held -= unused.getValue();
        executor.refused.put(stage, until);
        for (int i = 0; i < unused.getValue(); i++) {
          executor.idle.add(stage);
        }
      }
      executor.bound.clear();
    }
    return any;
  }

  /** Slots promised to the stage in this round. */
  int boundTo(StageState stage) {
    int count = 0;
    for (Executor executor : executors.values()) {
      count += executor.bound.getOrDefault(stage, 0);
    }
    return count;
  }

  /** Slots on which tasks of the stage run. */
  int running(StageState stage) {
    int count = 0;
    for (Executor executor : executors.values()) {
      for (StageState of : executor.running.values()) {
        count += of == stage ? 1 : 0;
      }
    }
    return count;
  }

  /** When the running tasks of the stage began; those of slots promised to it in this round begin now. */
  List<Double> runningSinceMs(StageState stage) {
    List<Double> since = new ArrayList<>();
    for (Executor executor : executors.values()) {
      executor.running.forEach(
          (task, of) -> {
            if (of == stage) {
              since.add(executor.sinceMs.get(task));
            }
          });
    }
    for (int bound = boundTo(stage); bound > 0; bound--) {
      since.add((double) System.currentTimeMillis());
    }
    return since;
  }

  /** Idle slots by the query they served last. */
  Map<QueryState, Integer> idleByQuery() {
    Map<QueryState, Integer> idle = new HashMap<>();
    for (Executor executor : executors.values()) {
      for (StageState last : executor.idle) {
        if (last != null) {
          idle.merge(last.query, 1, Integer::sum);
        }
      }
    }
    return idle;
  }

  int total() {
    int total = running;
    for (Executor executor : executors.values()) {
      total += executor.idle.size();
      for (int bound : executor.bound.values()) {
        total += bound;
      }
    }
    return total;
  }

  int running() {
    return running;
  }

  /**
   * Chooses which executors to give back when there are more than {@code target}: idle ones, which serve nothing from
   * now on.
   *
   * @return all executors that are to go and are still here
   */
  Set<String> releaseDownTo(int target) {
    leaving.retainAll(executors.keySet());
    for (Executor executor : executors.values()) {
      if (executors.size() - leaving.size() <= target) {
        break;
      }
      if (executor.isIdle()) {
        leaving.add(executor.id);
      }
    }
    return Set.copyOf(leaving);
  }

  /** The executor stays after all. */
  void keep(String executorId) {
    leaving.remove(executorId);
  }

  boolean isLeaving(String executorId) {
    return leaving.contains(executorId);
  }

  private static boolean take(Map<StageState, Integer> counts, StageState stage) {
    Integer count = counts.get(stage);
    if (count == null) {
      return false;
    }
    if (count == 1) {
      counts.remove(stage);
    } else {
      counts.put(stage, count - 1);
    }
    return true;
  }
}
