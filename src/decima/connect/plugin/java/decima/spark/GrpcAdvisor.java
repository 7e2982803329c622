package decima.spark;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLException;
import org.sparkproject.connect.grpc.CallOptions;
import org.sparkproject.connect.grpc.Channel;
import org.sparkproject.connect.grpc.ClientInterceptors;
import org.sparkproject.connect.grpc.ManagedChannel;
import org.sparkproject.connect.grpc.Metadata;
import org.sparkproject.connect.grpc.MethodDescriptor;
import org.sparkproject.connect.grpc.Status;
import org.sparkproject.connect.grpc.StatusRuntimeException;
import org.sparkproject.connect.grpc.netty.GrpcSslContexts;
import org.sparkproject.connect.grpc.netty.NettyChannelBuilder;
import org.sparkproject.connect.grpc.stub.ClientCalls;
import org.sparkproject.connect.grpc.stub.MetadataUtils;
import org.sparkproject.connect.protobuf.DynamicMessage;

/** The scheduling service as a gRPC client of Spark's own (shaded) grpc-java sees it. */
final class GrpcAdvisor implements Advisor {
  private static final MethodDescriptor<DynamicMessage, DynamicMessage> OPEN =
      Messages.method("Open", "OpenRequest", "OpenReply", MethodDescriptor.MethodType.UNARY);
  private static final MethodDescriptor<DynamicMessage, DynamicMessage> CLOSE =
      Messages.method("Close", "CloseRequest", "CloseReply", MethodDescriptor.MethodType.UNARY);
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
  private static final int PROTOCOL_VERSION = 1;
  private static final long CLOSE_TIMEOUT_MS = 1000;

  /** How many executors the service wants this driver of a shared cluster to have; {@code number} grows. */
  record Command(long number, int target, boolean ask) {}

  private final Settings settings;
  private final String client;
  private final SessionState state;
  private ManagedChannel channel;
  private Channel calls;
  private DecisionStream decisions;
  private int lastSlots;
  private volatile String session;
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
   * Begins a session, over a fresh connection: the back-off of gRPC itself can be minutes. An empty report goes first,
   * so that what is slow or wrong shows here and not under the scheduler's lock, and classes are loaded on both sides.
   */
  synchronized void connect(long timeoutMs) throws AdvisorException {
    try {
      if (channel != null) {
        channel.shutdownNow();
      }
      channel = channel();
      calls = authorized(channel);
      decisions = new DecisionStream(calls);
      open(timeoutMs);
      decideOnce(new ClusterView(List.of(), lastSlots), null, timeoutMs);
      state.forget();
    } catch (IOException | StatusRuntimeException failure) {
      throw new AdvisorException(reason(failure), failure);
    }
  }

  @Override
  public synchronized Advice decide(ClusterView view, Offer offer, long budgetMs) throws AdvisorException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(budgetMs);
    lastSlots = view.slots();
    try {
      try {
        return decideOnce(view, offer, budgetMs);
      } catch (StatusRuntimeException failure) {
        state.forget();
        switch (failure.getStatus().getCode()) {
          case NOT_FOUND -> open(remainingMs(deadline)); // the service was restarted
          case FAILED_PRECONDITION -> { } // it lost track: the whole state once more
          default -> throw failure;
        }
        return decideOnce(view, offer, remainingMs(deadline));
      }
    } catch (StatusRuntimeException failure) {
      throw new AdvisorException(reason(failure), failure);
    } catch (AdvisorException | RuntimeException failure) {
      state.forget();
      throw failure;
    }
  }

  private Advice decideOnce(ClusterView view, Offer offer, long budgetMs) throws AdvisorException {
    DynamicMessage request = state.request(session, view, offer);
    if (!decisions.isOpen()) {
      decisions = new DecisionStream(calls);
    }
    DynamicMessage reply = decisions.ask(request, budgetMs);
    remember(reply);
    Advice advice = state.advice(reply, request, view, offer);
    state.acknowledged();
    return advice;
  }

  /**
   * Asks about queries that do not exist, in a session of its own, until their number or the time is over. Decisions
   * may be asked for meanwhile.
   */
  void rehearse(long timeLimitMs) throws AdvisorException {
    Channel over;
    synchronized (this) {
      over = calls;
    }
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeLimitMs);
    Rehearsal rehearsal = new Rehearsal();
    SessionState known = new SessionState(false);
    try {
      DynamicMessage opened = ClientCalls.blockingUnaryCall(over, OPEN, within(timeLimitMs), opening("", false));
      String rehearsed = (String) Messages.get(opened, "session");
      DecisionStream stream = new DecisionStream(over);
      try {
        for (int i = 0; i < settings.rehearsals() && System.nanoTime() < deadline; i++) {
          Offer offer = rehearsal.next();
          ClusterView view = rehearsal.view();
          DynamicMessage request = known.request(rehearsed, view, offer);
          DynamicMessage reply = stream.ask(request, remainingMs(deadline));
          known.advice(reply, request, view, offer);
          known.acknowledged();
        }
      } finally {
        stream.close();
      }
      ClientCalls.blockingUnaryCall(over, CLOSE, within(CLOSE_TIMEOUT_MS), closing(rehearsed));
    } catch (StatusRuntimeException failure) {
      throw new AdvisorException(reason(failure), failure);
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
    DynamicMessage reply = ClientCalls.blockingUnaryCall(calls, OPEN, within(timeoutMs), request);
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
    if (channel == null) {
      return;
    }
    if (session != null) {
      try {
        ClientCalls.blockingUnaryCall(calls, CLOSE, within(CLOSE_TIMEOUT_MS), closing(session));
      } catch (StatusRuntimeException gone) {
        // The service is not there any more or forgets the session by itself; the driver is about to end anyway.
        session = null;
      }
    }
    channel.shutdownNow();
  }

  private ManagedChannel channel() throws SSLException {
    NettyChannelBuilder builder = NettyChannelBuilder.forAddress(settings.host(), settings.port()).directExecutor();
    if (settings.tlsAuthority().isEmpty()) {
      builder.usePlaintext();
    } else {
      builder.sslContext(GrpcSslContexts.forClient().trustManager(new File(settings.tlsAuthority())).build());
    }
    return builder.build();
  }

  private Channel authorized(Channel plain) throws IOException {
    if (settings.tokenFile().isEmpty()) {
      return plain;
    }
    Metadata headers = new Metadata();
    headers.put(AUTHORIZATION, "Bearer " + Files.readString(Path.of(settings.tokenFile())).strip());
    return ClientInterceptors.intercept(plain, MetadataUtils.newAttachHeadersInterceptor(headers));
  }

  private static CallOptions within(long milliseconds) {
    return CallOptions.DEFAULT.withDeadlineAfter(milliseconds, TimeUnit.MILLISECONDS);
  }

  private static long remainingMs(long deadline) {
    return Math.max(1, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()));
  }

  private static String reason(Exception failure) {
    if (failure instanceof StatusRuntimeException call) {
      Status status = call.getStatus();
      String cause = status.getCause() == null ? "" : ": " + status.getCause().getMessage();
      String said = status.getDescription() == null ? "" : ": " + status.getDescription();
      return (status.getCode() + said + cause).replace('\n', ' ');
    }
    return failure.toString();
  }
}
