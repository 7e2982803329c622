package decima.spark;

import decima.spark.Advisor.Advice;
import decima.spark.Advisor.AdvisorException;
import decima.spark.Advisor.ClusterView;
import decima.spark.Advisor.Offer;
import decima.spark.Advisor.QueryView;
import decima.spark.Advisor.StageView;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.sparkproject.spark_core.protobuf.DynamicMessage;

/** What the service knows of this driver: graphs go out once, afterwards only the counters that changed. */
final class SessionState {
  /** What was sent of one query. */
  private static final class Sent {
    final QueryState query;
    int graphVersion;
    Shape shape;
    final Map<Integer, StageView> stages = new HashMap<>();

    Sent(QueryState query) {
      this.query = query;
    }
  }

  /** Everything of a JobState but its stages. */
  private record Shape(int attached, String runnable, String schedulable) {}

  /** As long as the protocol allows. */
  private static final double LONGEST_DELAY_MS = 1e15;

  /** Most stages of a report, those of graphs and of states together, unless it is about one query alone. */
  private static final int REPORT_STAGES = 1000;

  /** Whether the session was opened by a driver that delays stages. */
  private final boolean mayDelay;

  private final Map<String, Sent> known = new HashMap<>();
  private long sequence;
  private boolean full = true;

  SessionState(boolean mayDelay) {
    this.mayDelay = mayDelay;
  }

  /** The service may know anything or nothing now: the next request holds all. */
  void forget() {
    full = true;
  }

  /** The service answered the last request. */
  void acknowledged() {
    full = false;
  }

  /** The next requests of the session, one after the other; the last one asks for the decision. */
  List<DynamicMessage> requests(String session, ClusterView view, Offer offer) {
    return parts(report(session, view, offer));
  }

  /** Messages that say together what a report says: first graphs, then states. */
  private List<DynamicMessage> parts(DynamicMessage report) {
    int stages = 0;
    for (String field : List.of("jobs", "states")) {
      for (DynamicMessage entry : Messages.list(report, field)) {
        stages += Messages.list(entry, "stages").size();
      }
    }
    if (stages <= REPORT_STAGES) {
      return List.of(report);
    }
    List<DynamicMessage.Builder> parts = new ArrayList<>();
    int room = 0;
    for (String field : List.of("jobs", "states")) {
      for (DynamicMessage entry : Messages.list(report, field)) {
        int size = Messages.list(entry, "stages").size();
        if (parts.isEmpty() || size > room) {
          parts.add(part(report, parts.isEmpty()));
          room = REPORT_STAGES;
        }
        Messages.add(parts.get(parts.size() - 1), field, entry);
        room -= size;
      }
    }
    if (Messages.has(report, "offer")) {
      Messages.set(parts.get(parts.size() - 1), "offer", Messages.get(report, "offer"));
    }
    return parts.stream().map(DynamicMessage.Builder::build).toList();
  }

  /** Begins a part of a report; the first one has its number, and says what is gone and whether it is full. */
  private DynamicMessage.Builder part(DynamicMessage report, boolean first) {
    DynamicMessage.Builder part = Messages.builder("DecideRequest");
    for (String field : List.of("session", "time_ms", "executors")) {
      Messages.set(part, field, Messages.get(report, field));
    }
    Messages.set(part, "sequence", first ? Messages.get(report, "sequence") : (Object) (++sequence));
    if (first) {
      Messages.set(part, "full", Messages.get(report, "full"));
      Messages.set(part, "gone", Messages.get(report, "gone"));
    }
    return part;
  }

  private DynamicMessage report(String session, ClusterView view, Offer offer) {
    if (full) {
      known.clear();
    }
    DynamicMessage.Builder request = Messages.builder("DecideRequest");
    Messages.set(request, "session", session);
    Messages.set(request, "sequence", ++sequence);
    Messages.set(request, "full", full);
    Messages.set(request, "time_ms", (double) System.currentTimeMillis());
    Messages.set(request, "executors", view.slots());
    if (offer != null) {
      DynamicMessage.Builder offered = Messages.builder("Offer");
      Messages.set(offered, "job", offer.last() == null ? "" : offer.last().id);
      Messages.set(offered, "executors", offer.slots());
      Messages.set(request, "offer", offered.build());
    }
    Set<String> present = new HashSet<>();
    for (QueryView query : view.queries()) {
      present.add(query.query().id);
      addChanges(request, query);
    }
    for (String id : Set.copyOf(known.keySet())) {
      if (!present.contains(id)) {
        Messages.add(request, "gone", id);
        known.remove(id);
      }
    }
    return request.build();
  }

  private void addChanges(DynamicMessage.Builder request, QueryView view) {
    QueryState query = view.query();
    Sent before = known.get(query.id);
    if (before != null && before.query != query) {
      Messages.add(request, "gone", query.id); // another query under the same name; the service reads this list first
      known.remove(query.id);
    }
    Sent sent = known.computeIfAbsent(query.id, id -> new Sent(query));
    if (sent.graphVersion != query.graphVersion) {
      Messages.add(request, "jobs", graph(query));
      sent.graphVersion = query.graphVersion;
    }
    StringBuilder runnable = new StringBuilder();
    StringBuilder schedulable = new StringBuilder();
    for (StageView stage : view.stages()) {
      append(runnable, stage.runnable(), stage.stage().id);
      append(schedulable, stage.schedulable(), stage.stage().id);
    }
    Shape shape = new Shape(view.attached(), runnable.toString(), schedulable.toString());
    DynamicMessage.Builder state = Messages.builder("JobState");
    boolean changed = !Objects.equals(sent.shape, shape);
    sent.shape = shape;
    for (StageView stage : view.stages()) {
      if (!stage.equals(sent.stages.put(stage.stage().id, stage))) {
        Messages.add(state, "stages", counters(stage));
        changed = true;
      }
    }
    if (!changed) {
      return;
    }
    Messages.set(state, "job", query.id);
    Messages.set(state, "attached", view.attached());
    for (StageView stage : view.stages()) {
      if (stage.runnable()) {
        Messages.add(state, "runnable", (long) stage.stage().id);
      }
      if (stage.schedulable()) {
        Messages.add(state, "schedulable", (long) stage.stage().id);
      }
    }
    if (mayDelay) {
      addDelayed(state, view);
    }
    Messages.add(request, "states", state.build());
  }

  private static void addDelayed(DynamicMessage.Builder state, QueryView view) {
    for (StageView stage : view.stages()) {
      if (stage.delayEndMs() > 0) {
        DynamicMessage.Builder delayed = Messages.builder("DelayedStage");
        Messages.set(delayed, "stage", (long) stage.stage().id);
        Messages.set(delayed, "withheld", stage.withheld());
        Messages.set(delayed, "end_ms", (double) stage.delayEndMs());
        Messages.add(state, "delayed", delayed.build());
      }
    }
  }

  private DynamicMessage graph(QueryState query) {
    DynamicMessage.Builder job = Messages.builder("Job");
    Messages.set(job, "job", query.id);
    Messages.set(job, "name", query.id);
    Messages.set(job, "profile", query.profile);
    Messages.set(job, "arrival_ms", (double) query.arrivalMs);
    for (StageState stage : query.stages()) {
      DynamicMessage.Builder node = Messages.builder("Stage");
      Messages.set(node, "stage", (long) stage.id);
      Messages.set(node, "num_tasks", Math.max(1, stage.tasks));
      for (int parent : stage.parents) {
        Messages.add(node, "parents", (long) parent);
      }
      Messages.add(job, "stages", node.build());
    }
    return job.build();
  }

  private static DynamicMessage counters(StageView view) {
    DynamicMessage.Builder counters = Messages.builder("StageState");
    Messages.set(counters, "stage", (long) view.stage().id);
    Messages.set(counters, "launched", view.launched());
    Messages.set(counters, "finished", view.finished());
    Messages.set(counters, "executors", view.slots());
    Messages.set(counters, "measured_tasks", view.measuredTasks());
    Messages.set(counters, "measured_ms", view.measuredMs());
    for (double begin : view.runningSinceMs()) {
      Messages.add(counters, "running_since_ms", begin);
    }
    return counters.build();
  }

  private static void append(StringBuilder ids, boolean wanted, int id) {
    if (wanted) {
      ids.append(id).append(' ');
    }
  }

  /** Reads a decision; everything in it that could not be carried out is an error of the service. */
  Advice advice(DynamicMessage reply, DynamicMessage request, ClusterView view, Offer offer)
      throws AdvisorException {
    if (!Messages.get(reply, "sequence").equals(Messages.get(request, "sequence"))) {
      throw new AdvisorException("the reply is to another call");
    }
    if (offer == null || (Boolean) Messages.get(reply, "idle")) {
      return Advice.IDLE;
    }
    String job = (String) Messages.get(reply, "job");
    long stageId = (Long) Messages.get(reply, "stage");
    int limit = Messages.number(reply, "limit");
    int slots = Messages.number(reply, "executors");
    double delayMs = (Double) Messages.get(reply, "delay_ms");
    boolean delays = delayMs != 0;
    int executorClass = Messages.number(reply, "executor_class");
    if (executorClass > 0) {
      throw new AdvisorException("executor class " + executorClass + " for job '" + job + "', where all are alike");
    }
    if (limit < 1 && !delays) {
      throw new AdvisorException("parallelism limit " + limit + " for job '" + job + "'");
    }
    if (delays && !(delayMs > 0 && delayMs <= LONGEST_DELAY_MS)) {
      throw new AdvisorException("delay of " + delayMs + " ms for job '" + job + "'");
    }
    if (delays && !mayDelay) {
      throw new AdvisorException("stage " + stageId + " of job '" + job + "' delayed, which nobody asked for");
    }
    if (slots < (delays ? 0 : 1) || slots > (delays ? 0 : offer.slots())) {
      throw new AdvisorException(
          slots + " executors for stage " + stageId + " where " + offer.slots() + " were offered");
    }
    for (QueryView query : view.queries()) {
      if (query.query().id.equals(job)) {
        for (StageView stage : query.stages()) {
          if (stage.stage().id == stageId && stage.schedulable()) {
            if (delays && (stage.launched() > 0 || stage.delayEndMs() > 0)) {
              throw new AdvisorException("stage " + stageId + " of job '" + job + "' has begun or was delayed before");
            }
            return new Advice(stage.stage(), limit, delayMs, executorClass, slots);
          }
        }
      }
    }
    throw new AdvisorException("stage " + stageId + " of job '" + job + "' cannot be scheduled now or does not exist");
  }
}
