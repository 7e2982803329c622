package decima.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.spark.scheduler.ActiveJob;
import org.apache.spark.scheduler.ShuffleMapStage;
import org.apache.spark.scheduler.Stage;
import org.apache.spark.scheduler.TaskSet;
import scala.collection.JavaConverters;

/** All queries of this SparkContext in order of arrival. Guarded by the lock of the task scheduler. */
final class QueryRegistry {
  /** A query without a running Spark job is kept this long for the next job of the same query (adaptive execution). */
  private static final long DORMANT_MS = 60_000;

  private final LinkedHashMap<String, QueryState> queries = new LinkedHashMap<>();
  private final Map<Integer, QueryState> bySparkJob = new HashMap<>();
  private final Map<Integer, Integer> finalStages = new HashMap<>();

  /**
   * Reads the graph of the Spark job behind a task set. Runs in the event loop of the DAG scheduler, the only thread
   * that may look at its tables; without the lock of the task scheduler.
   */
  static List<QueryState.Found> readGraph(ActiveJob job) {
    List<QueryState.Found> found = new ArrayList<>();
    collect(job.finalStage(), new HashSet<>(), found);
    return found;
  }

  // Depth is that of the lineage between shuffles, tens at most in SQL plans; iterative programs can have hundreds.
  private static void collect(Stage stage, Set<Integer> seen, List<QueryState.Found> found) {
    if (!seen.add(stage.id())) {
      return;
    }
    List<Integer> parents = new ArrayList<>();
    for (Stage parent : JavaConverters.seqAsJavaList(stage.parents())) {
      collect(parent, seen, found);
      parents.add(parent.id());
    }
    int shuffle = -1;
    boolean available = false;
    if (stage instanceof ShuffleMapStage map) {
      shuffle = map.shuffleDep().shuffleId();
      available = map.isAvailable();
    }
    found.add(new QueryState.Found(stage.id(), shuffle, stage.numTasks(), available, parents));
  }

  /** Merges what {@link #readGraph} found; returns the stage of the task set, or null when it is not in there. */
  StageState submitted(TaskSet taskSet, int finalStage, List<QueryState.Found> found, long nowMs) {
    Properties properties = taskSet.properties();
    int sparkJob = taskSet.priority();
    String id = queryId(properties, sparkJob);
    QueryState query = queries.get(id);
    // A name may be used again (a job group set once in a notebook): what has no stage in common is another query.
    if (query == null || (!query.isActive() && query.held == 0 && !query.shares(found))) {
      query = new QueryState(id, property(properties, Settings.PROFILE_PROPERTY, ""), nowMs);
      queries.remove(id);
      queries.put(id, query);
    }
    query.merge(sparkJob, found);
    bySparkJob.put(sparkJob, query);
    finalStages.put(sparkJob, finalStage);
    forgetDormant(nowMs);
    return query.stage(taskSet.stageId());
  }

  /**
   * A task set has ended. With its last stage a Spark job is over; that it is comes later on the listener bus, and
   * until then a fair scheduler would count a job that needs nothing.
   */
  void stageEnded(StageState stage, TaskSet taskSet, long nowMs) {
    Integer last = finalStages.get(taskSet.priority());
    if (stage.isFinished() && last != null && last == taskSet.stageId()) {
      sparkJobEnded(taskSet.priority(), nowMs);
    }
  }

  /** A Spark job has ended, in whatever way. */
  void sparkJobEnded(int sparkJob, long nowMs) {
    finalStages.remove(sparkJob);
    QueryState query = bySparkJob.remove(sparkJob);
    if (query != null) {
      query.sparkJobEnded(sparkJob, nowMs);
    }
  }

  /** Queries that Spark works on, in order of arrival. */
  List<QueryState> active() {
    List<QueryState> active = new ArrayList<>();
    for (QueryState query : queries.values()) {
      if (query.isActive()) {
        active.add(query);
      }
    }
    return active;
  }

  private void forgetDormant(long nowMs) {
    for (Iterator<QueryState> each = queries.values().iterator(); each.hasNext(); ) {
      QueryState query = each.next();
      if (!query.isActive() && query.held == 0 && nowMs - query.lastSeenMs > DORMANT_MS) {
        each.remove();
      }
    }
  }

  private static String queryId(Properties properties, int sparkJob) {
    String named = property(properties, Settings.QUERY_PROPERTY, null);
    if (named != null) {
      return named;
    }
    String execution = property(properties, "spark.sql.execution.id", null);
    if (execution != null) {
      return "sql-" + execution;
    }
    String group = property(properties, "spark.jobGroup.id", null);
    return group != null ? "group-" + group : "job-" + sparkJob;
  }

  private static String property(Properties properties, String key, String otherwise) {
    String value = properties == null ? null : properties.getProperty(key);
    return value == null || value.isEmpty() ? otherwise : value;
  }
}
