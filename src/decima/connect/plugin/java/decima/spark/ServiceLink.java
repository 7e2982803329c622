package decima.spark;

import decima.spark.Advisor.Advice;
import decima.spark.Advisor.AdvisorException;
import decima.spark.Advisor.ClusterView;
import decima.spark.Advisor.Offer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether the service can be asked. After a failure it is left alone for a while that doubles up to a maximum; then a
 * thread of its own connects again, so that the lock of the task scheduler is never held for a dead service, and the
 * next decision is the proof. One outage writes one line when it begins and one when it ends.
 */
final class ServiceLink {
  private static final Logger LOG = LoggerFactory.getLogger(ServiceLink.class);

  /** Back-off starts anew when the service has worked this long; a flapping one would be asked all the time. */
  private static final long STABLE_NS = TimeUnit.SECONDS.toNanos(10);

  private enum State {
    DOWN,
    CONNECTED,
    PROVEN
  }

  private final GrpcAdvisor advisor;
  private final Settings settings;
  private final Metrics metrics;
  private final ScheduledExecutorService background =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread thread = new Thread(task, "decima-service");
            thread.setDaemon(true);
            return thread;
          });
  private final CountDownLatch firstAttempt = new CountDownLatch(1);

  private State state = State.DOWN;
  private boolean rehearsed;
  private boolean outageLogged;
  private boolean closed;
  private long backoffMs;
  private long outageSince = System.nanoTime();
  private long provenSince;

  ServiceLink(GrpcAdvisor advisor, Settings settings, Metrics metrics) {
    this.advisor = advisor;
    this.settings = settings;
    this.metrics = metrics;
    this.backoffMs = settings.backoffMs();
  }

  /** Connects; returns after the first attempt, or when the time limit of connecting is over. */
  void start() {
    background.execute(this::connect);
    try {
      if (!firstAttempt.await(settings.connectTimeoutMs() + 1000, TimeUnit.MILLISECONDS)) {
        LOG.debug("still connecting to the scheduling service at {}", settings.address());
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  synchronized boolean isUsable() {
    return state != State.DOWN;
  }

  /** Whether the driver is ending, which is no outage. */
  synchronized boolean isClosed() {
    return closed;
  }

  /** Asks for a decision; null when the service failed, which begins an outage. */
  Advice ask(ClusterView view, Offer offer, long budgetMs) {
    if (!isUsable()) {
      return null;
    }
    long begin = System.nanoTime();
    try {
      Advice advice = advisor.decide(view, offer, Math.min(budgetMs, settings.timeoutMs()));
      if (offer != null) {
        metrics.decided(System.nanoTime() - begin, view.queries().size());
      }
      if (advice.stage() != null) {
        proven(); // that all slots are to stay idle can be said by a service in any condition
      }
      return advice;
    } catch (AdvisorException | RuntimeException failure) {
      failed(failure);
      return null;
    }
  }

  /** What became of an advice, for those who want to look at it afterwards. */
  void decided(Advice advice, int bound) {
    metrics.recordDecision(advice, bound, advisor.schedulerName());
  }

  GrpcAdvisor.Command command() {
    return advisor.command();
  }

  void close() {
    synchronized (this) {
      closed = true;
      state = State.DOWN;
    }
    background.shutdownNow();
    advisor.close();
  }

  private void connect() {
    try {
      advisor.connect(settings.connectTimeoutMs());
      synchronized (this) {
        if (closed) {
          return;
        }
        state = State.CONNECTED;
        if (!outageLogged) {
          LOG.info("Decima: stages are scheduled by {} at {}", advisor.schedulerName(), settings.address());
        }
      }
    } catch (AdvisorException | RuntimeException failure) {
      failed(failure);
    } finally {
      firstAttempt.countDown();
    }
    if (!rehearsed && settings.rehearsals() > 0 && isUsable()) {
      rehearsed = true;
      rehearse();
    }
  }

  /** While Spark starts its executors: later the time is that of decisions. */
  private void rehearse() {
    try {
      advisor.rehearse(settings.connectTimeoutMs());
    } catch (AdvisorException | RuntimeException failure) {
      // Nothing depends on it; if the service is away, the next decision notices.
      LOG.info("Decima: calls before the first decision ended early ({})", failure.getMessage());
    }
  }

  private synchronized void proven() {
    if (state == State.PROVEN) {
      return;
    }
    state = State.PROVEN;
    provenSince = System.nanoTime();
    if (outageLogged) {
      long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - outageSince);
      LOG.warn(
          "Decima: the scheduling service at {} answers again after {} s and is used again",
          settings.address(),
          seconds);
      outageLogged = false;
    }
  }

  private synchronized void failed(Exception failure) {
    if (closed) {
      return;
    }
    if (state == State.PROVEN && System.nanoTime() - provenSince > STABLE_NS) {
      backoffMs = settings.backoffMs();
    }
    state = State.DOWN;
    if (!outageLogged) {
      outageLogged = true;
      outageSince = System.nanoTime();
      metrics.outage();
      LOG.warn(
          "Decima: no usable answer from the scheduling service at {} ({}); "
              + "Spark schedules by itself (FIFO) until there is one",
          settings.address(),
          failure.getMessage());
      LOG.debug("cause", failure);
    }
    background.schedule(this::connect, backoffMs, TimeUnit.MILLISECONDS);
    backoffMs = Math.min(2 * backoffMs, settings.backoffMaxMs());
  }
}
