package decima.spark;

import decima.spark.Advisor.ClusterView;
import decima.spark.Advisor.Offer;
import decima.spark.Advisor.QueryView;
import decima.spark.Advisor.StageView;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Queries that do not exist, for calls before the first real one: a batch of queries asks a few hundred times, too few for
 * the JVM to compile the way of a message, so that every decision of the batch would wait for interpreted code.
 */
final class Rehearsal {
  private static final int QUERIES = 20;
  private static final int STAGES = 10;
  private static final int TASKS = 4;
  private static final int SLOTS = 2;

  private final List<QueryState> queries = new ArrayList<>();
  private int call;

  Rehearsal() {
    for (int i = 0; i < QUERIES; i++) {
      QueryState query = new QueryState("rehearsal-" + i, "", i);
      List<QueryState.Found> chain = new ArrayList<>();
      for (int stage = 0; stage < STAGES; stage++) {
        chain.add(new QueryState.Found(stage, stage, TASKS, false, stage == 0 ? List.of() : List.of(stage - 1)));
      }
      query.merge(0, chain);
      queries.add(query);
    }
  }

  /** Goes on: in every call one query is a task further than before, and its slot is offered. */
  Offer next() {
    return new Offer(queries.get(call++ % QUERIES), 1);
  }

  /** How things stand. */
  ClusterView view() {
    List<QueryView> views = new ArrayList<>();
    for (int i = 0; i < QUERIES; i++) {
      int launched = (call + QUERIES - 1 - i) / QUERIES % (STAGES * TASKS - 1) + 1;
      List<StageView> stages = new ArrayList<>();
      for (StageState stage : queries.get(i).stages()) {
        int ofStage = Math.max(0, Math.min(TASKS, launched - TASKS * stage.id));
        boolean current = launched / TASKS == stage.id;
        int running = current && ofStage > 0 ? 1 : 0;
        stages.add(
            new StageView(
                stage,
                ofStage,
                ofStage - running,
                running,
                ofStage - running,
                10.0 * ofStage,
                Collections.nCopies(running, (double) call),
                current,
                current,
                false,
                0));
      }
      views.add(new QueryView(queries.get(i), 1, stages));
    }
    return new ClusterView(views, SLOTS * QUERIES);
  }
}
