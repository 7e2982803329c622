package decima.spark;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.sparkproject.connect.grpc.CallOptions;
import org.sparkproject.connect.grpc.Channel;
import org.sparkproject.connect.grpc.ClientCall;
import org.sparkproject.connect.grpc.Metadata;
import org.sparkproject.connect.grpc.MethodDescriptor;
import org.sparkproject.connect.grpc.Status;
import org.sparkproject.connect.grpc.StatusRuntimeException;
import org.sparkproject.connect.protobuf.DynamicMessage;

/**
 * Calls for decisions, one after the other, over one stream: it costs less than half of a call each. A failure ends the
 * stream; for one caller at a time.
 */
final class DecisionStream {
  private static final MethodDescriptor<DynamicMessage, DynamicMessage> DECISIONS =
      Messages.method("Decisions", "DecideRequest", "Decision", MethodDescriptor.MethodType.BIDI_STREAMING);

  private final ClientCall<DynamicMessage, DynamicMessage> call;
  private final BlockingQueue<Object> arrived = new LinkedBlockingQueue<>(); // replies, at last the status
  private boolean ended;

  DecisionStream(Channel over) {
    call = over.newCall(DECISIONS, CallOptions.DEFAULT);
    call.start(
        new ClientCall.Listener<>() {
          @Override
          public void onMessage(DynamicMessage reply) {
            arrived.add(reply);
          }

          @Override
          public void onClose(Status status, Metadata trailers) {
            arrived.add(status);
          }
        },
        new Metadata());
  }

  /**
   * Asks, and waits for the answer.
   *
   * @throws StatusRuntimeException when there is none in time, or the service ended the stream
   */
  DynamicMessage ask(DynamicMessage request, long budgetMs) {
    call.request(1);
    call.sendMessage(request);
    Object answer;
    try {
      answer = arrived.poll(budgetMs, TimeUnit.MILLISECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw failed(Status.CANCELLED.withDescription("interrupted while waiting for a decision"));
    }
    if (answer == null) {
      throw failed(Status.DEADLINE_EXCEEDED.withDescription("no decision within " + budgetMs + " ms"));
    }
    if (answer instanceof Status status) {
      // A stream that ends without an error has no answer either.
      throw failed(status.isOk() ? Status.UNAVAILABLE.withDescription("the service ended the stream") : status);
    }
    return (DynamicMessage) answer;
  }

  /** Whether it can be asked: nothing failed, and the service, which speaks only when asked, did not end it since. */
  boolean isOpen() {
    return !ended && arrived.isEmpty();
  }

  /** Ends it. */
  void close() {
    ended = true;
    call.cancel("closed", null);
  }

  private StatusRuntimeException failed(Status status) {
    close();
    return status.asRuntimeException();
  }
}
