package decima.spark;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * A job in the sense of the paper: one query, whose stages may come from several Spark jobs. Guarded by the lock of
 * the task scheduler.
 *
 * <p>With adaptive execution each shuffle stage is a Spark job of its own that repeats its finished ancestors under
 * new stage ids; their shuffle id stays the same, so stages are told apart by it.
 */
final class QueryState {
  final String id;
  final String profile;
  final long arrivalMs;

  private final TreeMap<Integer, StageState> stages = new TreeMap<>();
  private final Map<Integer, Integer> stageOfShuffle = new HashMap<>();
  private final Map<Integer, Integer> alias = new HashMap<>();
  private final Set<Integer> activeJobs = new HashSet<>();

  /** Slots that run a task of this query or are bound to one of its stages. */
  int held;

  /** Grows with every stage that is added, so that a service which has seen the graph can be told about more. */
  int graphVersion;

  long lastSeenMs;

  QueryState(String id, String profile, long arrivalMs) {
    this.id = id;
    this.profile = profile;
    this.arrivalMs = arrivalMs;
    this.lastSeenMs = arrivalMs;
  }

  /** What is known of one stage of a Spark job before it is merged. */
  record Found(int id, int shuffleId, int tasks, boolean available, List<Integer> parents) {}

  /**
   * Adds the stages of one Spark job.
   *
   * @param sparkJob its id
   * @param found its stages, parents before children; a shuffle id below zero means none
   */
  void merge(int sparkJob, List<Found> found) {
    activeJobs.add(sparkJob);
    for (Found stage : found) {
      Integer known = stage.shuffleId() < 0 ? null : stageOfShuffle.get(stage.shuffleId());
      int canonical = known == null ? stage.id() : known;
      alias.put(stage.id(), canonical);
      // A stage that is there already and was never seen here was computed by another query: nothing to schedule.
      if (stages.containsKey(canonical) || stage.available()) {
        continue;
      }
      List<Integer> parents =
          stage.parents().stream().map(alias::get).filter(stages::containsKey).distinct().sorted().toList();
      stages.put(canonical, new StageState(this, canonical, stage.tasks(), parents));
      if (stage.shuffleId() >= 0) {
        stageOfShuffle.put(stage.shuffleId(), canonical);
      }
      graphVersion++;
    }
  }

  /** Whether one of these stages was part of this query before. */
  boolean shares(List<Found> found) {
    return found.stream()
        .anyMatch(stage -> stageOfShuffle.containsKey(stage.shuffleId()) || alias.containsKey(stage.id()));
  }

  /** The stage that Spark calls {@code stageId}, or null when it is not known. */
  StageState stage(int stageId) {
    Integer canonical = alias.get(stageId);
    return canonical == null ? null : stages.get(canonical);
  }

  /** Whether a child of the stage has all it needs, so that Spark will submit it in a moment. */
  boolean unlocks(StageState stage) {
    return stages.values().stream()
        .anyMatch(
            child ->
                !child.isStarted()
                    && child.parents.contains(stage.id)
                    && child.parents.stream().allMatch(parent -> stages.get(parent).isFinished()));
  }

  Collection<StageState> stages() {
    return stages.values();
  }

  void sparkJobEnded(int sparkJob, long nowMs) {
    activeJobs.remove(sparkJob);
    lastSeenMs = nowMs;
  }

  /** Whether Spark works on this query now; between the jobs of an adaptive query it does not. */
  boolean isActive() {
    return !activeJobs.isEmpty();
  }
}
