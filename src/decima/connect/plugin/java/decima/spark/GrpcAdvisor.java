package decima.spark;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.sparkproject.spark_core.protobuf.DynamicMessage;

/** The scheduling service as a client sees it: sessions, and decisions over a stream. */
final class GrpcAdvisor implements Advisor {
  private static final Messages.Method OPEN = Messages.method("Open", "OpenReply", false);
  private static final Messages.Method CLOSE = Messages.method("Close", "CloseReply", false);
  private static final Messages.Method DECISIONS = Messages.method("Decisions", "Decision", true);
  private static final int PROTOCOL_VERSION = 1;
  private static final long CLOSE_TIMEOUT_MS = 1000;

  /** How many executors the service wants this driver of a shared cluster to have; {@code number} grows. */
  record Command(long number, int target, boolean ask) {}

  private final Settings settings;
  private final String client;
  private final SessionState state;
  private GrpcConnection connection;
  private GrpcStream decisions;
  private int lastSlots;
  private volatile String session;
  private volatile String rehearsed; // session of a rehearsal that has not been ended
  private volatile String schedulerName = "";
  private volatile Command command;

  /**
   * Prepares the client; nothing is sent yet.
   *
   * @param settings address, limits, token and authority
   * @param client name of this driver in the logs of the service
   */
  GrpcAdvisor(Settings settings, String client) {
    this.settings = settings;
    this.client = client;
    this.state = new SessionState(!settings.isShared());
  }

  /**
   * Begins a session, over a fresh connection. An empty report goes first, so that what is slow or wrong shows here and
   * not under the scheduler's lock, and classes are loaded on both sides.
   */
  synchronized void connect(long timeoutMs) throws AdvisorException {
    try {
      if (connection != null) {
        connection.close();
      }
      connection = new GrpcConnection(settings);
      decisions = null;
      open(timeoutMs);
      decideOnce(new ClusterView(List.of(), lastSlots), null, timeoutMs);
      state.forget();
    } catch (CallFailure failure) {
      throw new AdvisorException(failure.getMessage(), failure);
    } catch (IOException failure) {
      throw new AdvisorException(failure.toString(), failure);
    }
  }

  @Override
  public synchronized Advice decide(ClusterView view, Offer offer, long budgetMs) throws AdvisorException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(budgetMs);
    lastSlots = view.slots();
    try {
      try {
        return decideOnce(view, offer, budgetMs);
      } catch (CallFailure failure) {
        state.forget();
        switch (failure.code()) {
          case NOT_FOUND -> open(remainingMs(deadline)); // the service was restarted
          case FAILED_PRECONDITION -> { } // it lost track: the whole state once more
          default -> throw failure;
        }
        return decideOnce(view, offer, remainingMs(deadline));
      }
    } catch (CallFailure failure) {
      throw new AdvisorException(failure.getMessage(), failure);
    } catch (AdvisorException | RuntimeException failure) {
      state.forget();
      throw failure;
    }
  }

  private Advice decideOnce(ClusterView view, Offer offer, long budgetMs) throws AdvisorException {
    List<DynamicMessage> requests = state.requests(session, view, offer);
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(budgetMs);
    if (decisions == null || !decisions.isOpen()) {
      decisions = connection.open(DECISIONS, budgetMs);
    }
    DynamicMessage reply = null;
    for (DynamicMessage request : requests) {
      reply = decisions.ask(request, remainingMs(deadline));
      remember(reply);
    }
    Advice advice = state.advice(reply, requests.get(requests.size() - 1), view, offer);
    state.acknowledged();
    return advice;
  }

  /**
   * Asks about queries that do not exist, in a session of its own, until their number or the time is over. Decisions
   * may be asked for meanwhile.
   */
  void rehearse(long timeLimitMs) throws AdvisorException {
    GrpcConnection over;
    synchronized (this) {
      over = connection;
    }
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeLimitMs);
    Rehearsal rehearsal = new Rehearsal();
    SessionState known = new SessionState(false);
    try {
      DynamicMessage opened = over.call(OPEN, opening("", false), timeLimitMs);
      rehearsed = (String) Messages.get(opened, "session");
      GrpcStream stream = over.open(DECISIONS, remainingMs(deadline));
      try {
        for (int i = 0; i < settings.rehearsals() && System.nanoTime() < deadline; i++) {
          Offer offer = rehearsal.next();
          ClusterView view = rehearsal.view();
          DynamicMessage request = known.requests(rehearsed, view, offer).get(0); // 400 stages at most
          DynamicMessage reply = stream.ask(request, remainingMs(deadline));
          known.advice(reply, request, view, offer);
          known.acknowledged();
        }
      } finally {
        stream.close();
      }
    } catch (CallFailure failure) {
      throw new AdvisorException(failure.getMessage(), failure);
    } finally {
      endRehearsal(over);
    }
  }

  /** Ends the session of a rehearsal, however that ended; the service takes one that it does not know. */
  private void endRehearsal(GrpcConnection over) {
    String ended = rehearsed;
    if (ended != null) {
      try {
        over.call(CLOSE, closing(ended), CLOSE_TIMEOUT_MS);
        rehearsed = null;
      } catch (CallFailure gone) {
        // Its connection is gone: close() says it once more over the present one.
        rehearsed = ended;
      }
    }
  }

  private DynamicMessage opening(String sharedCluster, boolean delays) {
    DynamicMessage.Builder request = Messages.builder("OpenRequest");
    Messages.set(request, "delays", delays);
    // What is left idle is offered again when something has happened, and by Spark every second.
    Messages.set(request, "running", sharedCluster.isEmpty());
    Messages.set(request, "version", PROTOCOL_VERSION);
    Messages.set(request, "client", client);
    Messages.set(request, "executors", settings.clusterExecutors().orElse(1));
    Messages.set(request, "moving_delay_ms", (double) settings.movingDelayMs());
    Messages.set(request, "mode", "paper");
    Messages.set(request, "scheduler", settings.scheduler());
    Messages.set(request, "shared_cluster", sharedCluster);
    return request.build();
  }

  private static DynamicMessage closing(String session) {
    DynamicMessage.Builder request = Messages.builder("CloseRequest");
    Messages.set(request, "session", session);
    return request.build();
  }

  private void open(long timeoutMs) {
    DynamicMessage request = opening(settings.sharedCluster(), !settings.isShared());
    DynamicMessage reply = connection.call(OPEN, request, timeoutMs);
    session = (String) Messages.get(reply, "session");
    schedulerName = (String) Messages.get(reply, "scheduler");
    command = null;
    state.forget();
    remember(reply);
  }

  private void remember(DynamicMessage reply) {
    if (Messages.has(reply, "command")) {
      DynamicMessage sent = (DynamicMessage) Messages.get(reply, "command");
      Command newest =
          new Command(
              (Long) Messages.get(sent, "number"),
              Messages.number(sent, "target"),
              (Boolean) Messages.get(sent, "ask"));
      if (command == null || newest.number() > command.number()) {
        command = newest;
      }
    }
  }

  /** Newest command, or null: not shared, or none yet. */
  Command command() {
    return command;
  }

  String schedulerName() {
    return schedulerName;
  }

  /** Ends the session; a service that is gone is no error here. */
  synchronized void close() {
    if (connection == null) {
      return;
    }
    endRehearsal(connection);
    if (session != null) {
      try {
        connection.call(CLOSE, closing(session), CLOSE_TIMEOUT_MS);
      } catch (CallFailure gone) {
        // The service is not there any more or forgets the session by itself; the driver is about to end anyway.
        session = null;
      }
    }
    connection.close();
  }

  private static long remainingMs(long deadline) {
    return Math.max(1, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()));
  }
}
