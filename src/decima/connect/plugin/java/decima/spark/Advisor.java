package decima.spark;

import java.util.List;

/** Whoever decides: the scheduling service behind gRPC. Called under the lock of the task scheduler, one at a time. */
interface Advisor {
  /**
   * What the service says about an offer; {@code stage} is null when the offered slots are to stay idle. With a delay
   * above 0 the stage gets no slot: it is withheld for that time. The class of executors says nothing here, where all are
   * alike.
   */
  record Advice(StageState stage, int limit, double delayMs, int executorClass, int slots) {
    static final Advice IDLE = new Advice(null, 0, 0, -1, 0);
  }

  /** Slots to decide about, all of which served {@code last} (null: none, or it is gone). */
  record Offer(QueryState last, int slots) {}

  /** Something the service could not do or should not have said; the text is for the log. */
  final class AdvisorException extends Exception {
    private static final long serialVersionUID = 1L;

    AdvisorException(String message) {
      super(message);
    }

    AdvisorException(String message, Throwable cause) {
      super(message, cause);
    }
  }

  /**
   * Asks for one decision.
   *
   * @param view state of all queries
   * @param offer slots to decide about; null only reports the state
   * @param budgetMs time limit
   * @throws AdvisorException when there is no answer in time, or a wrong one
   */
  Advice decide(ClusterView view, Offer offer, long budgetMs) throws AdvisorException;

  /** The state of the cluster at a decision. */
  record ClusterView(List<QueryView> queries, int slots) {}

  /** One query: {@code attached} slots run its tasks, are bound to it or were its last. */
  record QueryView(QueryState query, int attached, List<StageView> stages) {}

  /**
   * One stage; slots bound in this round count as launched, for they launch when it ends. {@code runningSinceMs}: when its
   * running tasks began. {@code delayEndMs} is when its delay ends or ended, 0 if it was never delayed;
   * {@code withheld}: it has not ended.
   */
  record StageView(
      StageState stage,
      int launched,
      int finished,
      int slots,
      int measuredTasks,
      double measuredMs,
      List<Double> runningSinceMs,
      boolean runnable,
      boolean schedulable,
      boolean withheld,
      long delayEndMs) {}
}
