package decima.spark;

import decima.spark.Advisor.Advice;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Numbers about the decisions of this driver, written when it stops; optionally every decision as a line of JSON. */
final class Metrics {
  private static final Logger LOG = LoggerFactory.getLogger(Metrics.class);

  /** Newest round trips that are kept for the percentiles. */
  private static final int KEPT = 1 << 16;

  private final String metricsFile;
  private final long startMs = System.currentTimeMillis();
  private final long[] roundTripNs = new long[KEPT];
  private Writer decisionsWriter;
  private long decisions;
  private long activeJobs;
  private int maxActiveJobs;
  private long lastNs;
  private int lastJobs;
  private int outages;
  private long freeRounds;

  Metrics(String metricsFile, String decisionsFile) {
    this.metricsFile = metricsFile;
    if (!decisionsFile.isEmpty()) {
      try {
        decisionsWriter = Files.newBufferedWriter(Path.of(decisionsFile), StandardCharsets.UTF_8);
      } catch (IOException wrong) {
        LOG.warn("Decima: decisions cannot be written to {}: {}", decisionsFile, wrong.toString());
      }
    }
  }

  /** A decision came back after this time, measured inside the scheduler's lock: coding, network and service. */
  synchronized void decided(long nanoseconds, int jobs) {
    roundTripNs[(int) (decisions++ % KEPT)] = nanoseconds;
    lastNs = nanoseconds;
    lastJobs = jobs;
    activeJobs += jobs;
    maxActiveJobs = Math.max(maxActiveJobs, jobs);
  }

  synchronized void outage() {
    outages++;
  }

  /** A round of offers that Spark decided by itself because the service could not be used. */
  synchronized void freeRound() {
    freeRounds++;
  }

  /** One line about a decision that names a stage, after {@link #decided} counted its round trip. */
  synchronized void recordDecision(Advice advice, int bound, String scheduler) {
    if (decisionsWriter == null) {
      return;
    }
    try {
      decisionsWriter.write(
          String.format(
              Locale.ROOT,
              "{\"time_ms\": %d, \"job\": %s, \"stage\": %d, \"limit\": %d, \"held\": %d, \"bound\": %d, "
                  + "%s\"round_trip_ms\": %.4f, \"jobs\": %d, \"scheduler\": %s}%n",
              System.currentTimeMillis(),
              quoted(advice.stage().query.id),
              advice.stage().id,
              advice.limit(),
              advice.stage().query.held,
              bound,
              advice.delayMs() > 0 ? String.format(Locale.ROOT, "\"delay_ms\": %.3f, ", advice.delayMs()) : "",
              lastNs / 1e6,
              lastJobs,
              quoted(scheduler)));
    } catch (IOException wrong) {
      LOG.warn("Decima: decisions are no longer written: {}", wrong.toString());
      decisionsWriter = null;
    }
  }

  synchronized void close() {
    double[] ms = new double[(int) Math.min(decisions, KEPT)];
    for (int i = 0; i < ms.length; i++) {
      ms[i] = roundTripNs[i] / 1e6;
    }
    Arrays.sort(ms);
    double meanJobs = decisions == 0 ? 0 : (double) activeJobs / decisions;
    LOG.info(
        "Decima: {} decisions, round trip median {} ms, p99 {} ms, {} active jobs on average, {} outages, "
            + "{} rounds without the service",
        decisions,
        rounded(quantile(ms, 0.5)),
        rounded(quantile(ms, 0.99)),
        rounded(meanJobs),
        outages,
        freeRounds);
    try {
      if (decisionsWriter != null) {
        decisionsWriter.close();
        decisionsWriter = null;
      }
      if (!metricsFile.isEmpty()) {
        Files.writeString(Path.of(metricsFile), json(ms, meanJobs));
      }
    } catch (IOException wrong) {
      LOG.warn("Decima: metrics cannot be written: {}", wrong.toString());
    }
  }

  private String json(double[] ms, double meanJobs) {
    return String.format(
        Locale.ROOT,
        "{\"decisions\": %d, \"round_trip_ms\": {\"median\": %s, \"p90\": %s, \"p99\": %s, \"max\": %s}, "
            + "\"active_jobs\": {\"mean\": %.2f, \"max\": %d}, \"outages\": %d, \"rounds_without_service\": %d, "
            + "\"seconds\": %.1f}%n",
        decisions,
        number(quantile(ms, 0.5)),
        number(quantile(ms, 0.9)),
        number(quantile(ms, 0.99)),
        number(quantile(ms, 1)),
        meanJobs,
        maxActiveJobs,
        outages,
        freeRounds,
        (System.currentTimeMillis() - startMs) / 1e3);
  }

  private static double quantile(double[] sorted, double q) {
    return sorted.length == 0 ? Double.NaN : sorted[(int) Math.ceil(q * (sorted.length - 1))];
  }

  private static String number(double value) {
    return Double.isNaN(value) ? "null" : String.format(Locale.ROOT, "%.4f", value);
  }

  private static String rounded(double value) {
    return String.format(Locale.ROOT, "%.2f", value);
  }

  private static String quoted(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ') {
        quoted.append(String.format("\\u%04x", (int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }
}
