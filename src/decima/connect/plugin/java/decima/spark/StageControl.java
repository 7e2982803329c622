package decima.spark;

import decima.spark.Advisor.Advice;
import decima.spark.Advisor.ClusterView;
import decima.spark.Advisor.Offer;
import decima.spark.Advisor.QueryView;
import decima.spark.Advisor.StageView;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The loop of section 5.2: a slot stays with its stage while that has tasks to start; then it is free, and while free
 * slots and runnable stages remain the service is asked for a stage and a parallelism limit of its job. Guarded by the
 * lock of the task scheduler.
 */
final class StageControl {
  private static final Logger LOG = LoggerFactory.getLogger(StageControl.class);

  /** How often the service is asked at least while a stage is withheld. */
  private static final long CHECK_NS = TimeUnit.MILLISECONDS.toNanos(500);

  /** A free slot: its executor and the stage it served last. */
  private record Free(String executorId, StageState last) {}

  private final QueryRegistry queries;
  private final Slots slots;
  private final ServiceLink link;
  private final Metrics metrics;
  private final long roundBudgetMs;
  private final long childWaitNs;
  private final boolean shared;
  private final LongConsumer wakeAfterMs;
  private long lastAskedNs;
  private boolean restricting;
  private boolean stallLogged;

  /**
   * The loop over what the driver knows.
   *
   * @param wakeAfterMs makes Spark offer its free slots again after so many milliseconds
   */
  StageControl(
      QueryRegistry queries,
      Slots slots,
      ServiceLink link,
      Metrics metrics,
      Settings settings,
      LongConsumer wakeAfterMs) {
    this.wakeAfterMs = wakeAfterMs;
    this.queries = queries;
    this.slots = slots;
    this.link = link;
    this.metrics = metrics;
    this.roundBudgetMs = settings.timeoutMs();
    this.childWaitNs = settings.childWaitMs() * 1_000_000L;
    this.shared = settings.isShared();
  }

  /**
   * Decides which stage each offered slot serves in this round.
   *
   * @param offered free slots by executor id
   * @param barrierTasks tasks of a waiting barrier stage, 0 without: it needs all its slots at once, so nothing else is
   *     decided while they are there
   * @return whether there is more to decide than the time of one round allowed
   */
  boolean decideRound(Map<String, Integer> offered, int barrierTasks) {
    Map<String, List<StageState>> idle = new LinkedHashMap<>();
    offered.forEach((executor, free) -> idle.put(executor, slots.offered(executor, free)));
    restricting = link.isUsable();
    if (!restricting) {
      dropDelays();
      metrics.freeRound();
      return false;
    }
    // Executors that another driver is to get serve nothing here any more.
    releaseSurplus();
    idle.keySet().removeIf(slots::isLeaving);
    Map<StageState, Integer> needs = needs();
    List<Free> free = keepBindings(idle, needs);
    if (barrierTasks > 0 && free.size() >= barrierTasks) {
      return false;
    }
    boolean unfinished = bindFree(free, needs);
    checkWhileWithheld(needs);
    if (restricting && !shared) {
      avoidStall(free, needs);
    }
    releaseSurplus();
    return unfinished;
  }

  /** Lets Spark decide this round. */
  void leaveToSpark() {
    restricting = false;
  }

  /** Whether a task of the stage may start on the executor; in fallback every executor may serve any stage. */
  boolean mayLaunch(String executorId, StageState stage) {
    return !restricting || slots.isBound(executorId, stage);
  }

  /** Without the service nobody could say what comes after a delay, so all stages may run. */
  private void dropDelays() {
    for (QueryState query : queries.active()) {
      query.stages().forEach(StageState::release);
    }
  }

  /** While all that could run is withheld nothing is asked, and a service that is gone would not be noticed. */
  private void checkWhileWithheld(Map<StageState, Integer> needs) {
    long now = System.nanoTime();
    if (!restricting || shared || now - lastAskedNs < CHECK_NS || !anyWithheld()) {
      return;
    }
    lastAskedNs = now;
    if (link.ask(view(needs, null), null, roundBudgetMs) == null) {
      dropDelays();
      restricting = false;
    }
  }

  private boolean anyWithheld() {
    return queries.active().stream().anyMatch(query -> query.stages().stream().anyMatch(StageState::isWithheld));
  }

  private Map<StageState, Integer> needs() {
    Map<StageState, Integer> needs = new LinkedHashMap<>();
    for (QueryState query : queries.active()) {
      for (StageState stage : query.stages()) {
        int launchable = stage.launchable();
        if (launchable > 0 && !stage.isWithheld()) {
          needs.put(stage, launchable);
        }
      }
    }
    return needs;
  }

  private List<Free> keepBindings(Map<String, List<StageState>> idle, Map<StageState, Integer> needs) {
    long now = System.nanoTime();
    List<Free> free = new ArrayList<>();
    idle.forEach(
        (executor, slotsOfIt) -> {
          for (StageState last : slotsOfIt) {
            if (last != null && needs.getOrDefault(last, 0) > 0 && !slots.refuses(executor, last, now)) {
              bind(new Free(executor, last), last, needs);
            } else if (last == null || !isBetweenStages(last)) {
              free.add(new Free(executor, last));
            }
          }
        });
    return free;
  }

  /**
   * Whether the stage has just run its last task and its child is not submitted yet. In the paper both happen at once;
   * in Spark the core is offered first, results are looked at by one thread and children submitted by another. A
   * decision in between would not see the child and send the slot to another job. Spark offers again when the child
   * comes, and every second.
   */
  private boolean isBetweenStages(StageState stage) {
    return stage.query.isActive()
        && (stage.isCompleting(slots.running(stage), childWaitNs)
            || (stage.finishedWithin(childWaitNs) && stage.query.unlocks(stage)));
  }

  private boolean bindFree(List<Free> free, Map<StageState, Integer> needs) {
    long deadline = System.nanoTime() + roundBudgetMs * 1_000_000L;
    for (Map.Entry<QueryState, List<Free>> group : byQuery(free).entrySet()) {
      List<Free> left = group.getValue();
      // A driver of a shared cluster offers also what it cannot use itself: others may.
      while (!left.isEmpty() && (shared || anyFits(left, needs))) {
        long budgetMs = (deadline - System.nanoTime()) / 1_000_000L;
        if (budgetMs <= 0) {
          return true;
        }
        lastAskedNs = System.nanoTime();
        Advice advice = link.ask(view(needs, left), new Offer(group.getKey(), left.size()), budgetMs);
        if (advice == null) {
          dropDelays();
          restricting = false; // bindings are dropped: Spark's own order until the service answers again
          return false;
        }
        if (advice.stage() != null && advice.delayMs() > 0) {
          delay(advice, needs);
          continue;
        }
        if (advice.stage() == null || bindAdvised(advice, left, free, needs) == 0) {
          break;
        }
      }
    }
    return false;
  }

  /** The stage is withheld; the same slots are offered once more, and again when its delay is over. */
  private void delay(Advice advice, Map<StageState, Integer> needs) {
    StageState stage = advice.stage();
    stage.withhold(advice.delayMs());
    needs.remove(stage);
    // Not before the clock says that it is over.
    wakeAfterMs.accept(Math.max(0, stage.delayEndMs() - System.currentTimeMillis()) + 1);
    link.decided(advice, 0);
  }

  private int bindAdvised(Advice advice, List<Free> left, List<Free> free, Map<StageState, Integer> needs) {
    StageState stage = advice.stage();
    int allowed = Math.min(advice.slots(), advice.limit() - stage.query.held);
    int bound = 0;
    long now = System.nanoTime();
    for (Free slot : List.copyOf(left)) {
      if (bound >= allowed || needs.getOrDefault(stage, 0) <= 0) {
        break;
      }
      if (!slots.refuses(slot.executorId(), stage, now)) {
        bind(slot, stage, needs);
        left.remove(slot);
        free.remove(slot);
        bound++;
      }
    }
    link.decided(advice, bound);
    return bound;
  }

  private void bind(Free slot, StageState stage, Map<StageState, Integer> needs) {
    slots.bind(slot.executorId(), slot.last(), stage);
    needs.merge(stage, -1, Integer::sum);
  }

  private boolean anyFits(List<Free> left, Map<StageState, Integer> needs) {
    long now = System.nanoTime();
    for (Map.Entry<StageState, Integer> need : needs.entrySet()) {
      if (need.getValue() > 0 && fits(left, need.getKey(), now)) {
        return true;
      }
    }
    return false;
  }

  private boolean fits(List<Free> left, StageState stage, long now) {
    return left.stream().anyMatch(slot -> !slots.refuses(slot.executorId(), stage, now));
  }

  private static Map<QueryState, List<Free>> byQuery(List<Free> free) {
    Map<QueryState, List<Free>> groups = new LinkedHashMap<>();
    for (Free slot : free) {
      QueryState last = slot.last() == null || !slot.last().query.isActive() ? null : slot.last().query;
      groups.computeIfAbsent(last, key -> new ArrayList<>()).add(slot);
    }
    return groups;
  }

  private void releaseSurplus() {
    if (shared && link.command() != null) {
      slots.releaseDownTo(link.command().target());
    }
  }

  /** Tells the service how things stand without offering anything; a driver of a shared cluster lives by that. */
  void report() {
    if (link.isUsable()) {
      link.ask(view(needs(), null), null, roundBudgetMs);
    }
  }

  // With nothing running no event would come that asks again, and Spark would wait for ever. The end of a delay is one.
  private void avoidStall(List<Free> free, Map<StageState, Integer> needs) {
    if (free.isEmpty() || slots.running() > 0 || needs.values().stream().mapToInt(Integer::intValue).sum() == 0) {
      return;
    }
    for (StageState stage : needs.keySet()) {
      if (slots.boundTo(stage) > 0) {
        return;
      }
    }
    if (anyWithheld()) {
      return;
    }
    long now = System.nanoTime();
    for (StageState stage : needs.keySet()) {
      for (Free slot : free) {
        if (needs.get(stage) > 0 && !slots.refuses(slot.executorId(), stage, now)) {
          if (!stallLogged) {
            LOG.warn(
                "Decima: the service leaves every executor idle while stages wait; one slot serves stage {}", stage);
            stallLogged = true;
          }
          bind(slot, stage, needs);
          return;
        }
      }
    }
  }

  /**
   * What the service is told.
   *
   * @param needs tasks to start, by stage
   * @param offered slots to decide about, null when nothing is offered: a stage that Spark would start on none of them
   *     cannot be chosen, or the service would choose it again and again while others wait
   */
  private ClusterView view(Map<StageState, Integer> needs, List<Free> offered) {
    long now = System.nanoTime();
    Map<QueryState, Integer> idle = slots.idleByQuery();
    List<QueryView> views = new ArrayList<>();
    for (QueryState query : queries.active()) {
      List<StageView> stages = new ArrayList<>();
      for (StageState stage : query.stages()) {
        int bound = slots.boundTo(stage);
        int launchable = needs.getOrDefault(stage, 0) + bound;
        int waiting = Math.max(0, stage.waiting() - bound);
        int running = stage.running() + bound;
        stages.add(
            new StageView(
                stage,
                stage.tasks - waiting,
                Math.max(0, stage.tasks - waiting - running),
                running,
                stage.measuredTasks(),
                stage.measuredMs(),
                slots.runningSinceMs(stage),
                launchable > 0,
                needs.getOrDefault(stage, 0) > 0 && (offered == null || fits(offered, stage, now)),
                stage.isWithheld(),
                stage.delayEndMs()));
      }
      views.add(new QueryView(query, query.held + idle.getOrDefault(query, 0), stages));
    }
    return new ClusterView(views, slots.total());
  }
}
