package decima.spark;

import java.util.OptionalInt;
import org.apache.spark.SparkConf;

/** The {@code spark.decima.*} settings; docs/spark.md has the table. */
record Settings(
    String host,
    int port,
    long timeoutMs,
    long childWaitMs,
    long connectTimeoutMs,
    long backoffMs,
    long backoffMaxMs,
    int rehearsals,
    String tokenFile,
    String tlsAuthority,
    String sharedCluster,
    OptionalInt clusterExecutors,
    long movingDelayMs,
    String scheduler,
    String metricsFile,
    String decisionsFile) {

  /** Local property that names the query a Spark job belongs to. */
  static final String QUERY_PROPERTY = "decima.query";

  /** Local property that names the measured profile of the query, for example "q05". */
  static final String PROFILE_PROPERTY = "decima.profile";

  static final String DEFAULT_SERVICE = "127.0.0.1:50051";

  static Settings read(SparkConf conf) {
    String service = conf.get("spark.decima.service", DEFAULT_SERVICE);
    int colon = service.lastIndexOf(':');
    if (colon <= 0) {
      throw new IllegalArgumentException("spark.decima.service must be HOST:PORT, got '" + service + "'");
    }
    int port;
    try {
      port = Integer.parseInt(service.substring(colon + 1));
    } catch (NumberFormatException wrong) {
      throw new IllegalArgumentException("spark.decima.service must be HOST:PORT, got '" + service + "'", wrong);
    }
    int executors = conf.getInt("spark.decima.cluster.executors", 0);
    return new Settings(
        service.substring(0, colon),
        port,
        conf.getTimeAsMs("spark.decima.timeout", "1s"),
        conf.getTimeAsMs("spark.decima.child.wait", "1s"),
        conf.getTimeAsMs("spark.decima.connect.timeout", "5s"),
        conf.getTimeAsMs("spark.decima.backoff", "1s"),
        conf.getTimeAsMs("spark.decima.backoff.max", "30s"),
        conf.getInt("spark.decima.rehearsals", 500),
        conf.get("spark.decima.token.file", ""),
        conf.get("spark.decima.tls.ca", ""),
        conf.get("spark.decima.shared", ""),
        executors > 0 ? OptionalInt.of(executors) : OptionalInt.empty(),
        conf.getTimeAsMs("spark.decima.cluster.moving.delay", "0s"),
        conf.get("spark.decima.scheduler", ""),
        conf.get("spark.decima.metrics.file", ""),
        conf.get("spark.decima.decisions.file", ""));
  }

  /** Whether this driver shares a standalone master with others and lets the service move executors between them. */
  boolean isShared() {
    return !sharedCluster.isEmpty();
  }

  String address() {
    return host + ":" + port;
  }
}
