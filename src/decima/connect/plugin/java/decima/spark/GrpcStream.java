package decima.spark;

import decima.spark.CallFailure.Code;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.http2.DefaultHttp2DataFrame;
import io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.netty.handler.codec.http2.DefaultHttp2ResetFrame;
import io.netty.handler.codec.http2.Http2DataFrame;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2HeadersFrame;
import io.netty.handler.codec.http2.Http2ResetFrame;
import io.netty.handler.codec.http2.Http2StreamFrame;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.sparkproject.spark_core.protobuf.DynamicMessage;
import org.sparkproject.spark_core.protobuf.InvalidProtocolBufferException;

/**
 * Calls, one after the other, over one stream: it costs less than half of a call each. A failure ends the stream; for one
 * caller at a time.
 */
final class GrpcStream {
  private static final int HEAD = 5; // of a message: whether it is compressed, and its length
  private static final int LONGEST = 4 << 20;

  private final Messages.Method method;
  private final BlockingQueue<Object> arrived = new LinkedBlockingQueue<>(); // replies, at last why there are no more
  private volatile Channel channel;
  private boolean ended;

  GrpcStream(Messages.Method method) {
    this.method = method;
  }

  ChannelHandler handler() {
    return new Replies();
  }

  void begin(Channel opened, Http2Headers headers) {
    channel = opened;
    send(new DefaultHttp2HeadersFrame(headers, false));
  }

  /**
   * Asks, and waits for the answer.
   *
   * @throws CallFailure when there is none in time, or the service ended the stream
   */
  DynamicMessage ask(DynamicMessage request, long budgetMs) {
    byte[] content = request.toByteArray();
    ByteBuf message = channel.alloc().buffer(HEAD + content.length);
    message.writeByte(0).writeInt(content.length).writeBytes(content);
    send(new DefaultHttp2DataFrame(message, !method.streams()));
    Object answer;
    try {
      answer = arrived.poll(budgetMs, TimeUnit.MILLISECONDS);
      if (answer instanceof byte[] && !method.streams()) {
        arrived.poll(budgetMs, TimeUnit.MILLISECONDS); // the status: for the service the call is over when that is sent
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw failed(new CallFailure(Code.CANCELLED, "interrupted while waiting for a decision"));
    }
    if (answer == null) {
      throw failed(new CallFailure(Code.DEADLINE_EXCEEDED, "no decision within " + budgetMs + " ms"));
    }
    if (answer instanceof CallFailure failure) {
      throw failed(failure);
    }
    try {
      return DynamicMessage.parseFrom(method.reply(), (byte[]) answer);
    } catch (InvalidProtocolBufferException wrong) {
      throw failed(new CallFailure(Code.INTERNAL, "the reply is no message: " + wrong.getMessage(), wrong));
    }
  }

  /** Whether it can be asked: nothing failed, and the service, which speaks only when asked, did not end it since. */
  boolean isOpen() {
    return !ended && arrived.isEmpty();
  }

  /** Ends it. */
  void close() {
    if (!ended) {
      ended = true;
      if (channel.isActive()) {
        channel.writeAndFlush(new DefaultHttp2ResetFrame(Http2Error.CANCEL));
      }
      channel.close();
    }
  }

  private CallFailure failed(CallFailure failure) {
    close();
    return failure;
  }

  private void send(Http2StreamFrame frame) {
    channel
        .writeAndFlush(frame)
        .addListener(
            (ChannelFutureListener)
                sent -> {
                  if (!sent.isSuccess()) {
                    arrived.add(new CallFailure(Code.UNAVAILABLE, "not sent: " + sent.cause().getMessage()));
                  }
                });
  }

  /** Takes what the service sends; runs in the thread of the connection. */
  private final class Replies extends SimpleChannelInboundHandler<Http2StreamFrame> {
    private ByteBuf received;
    private boolean over;

    @Override
    protected void channelRead0(ChannelHandlerContext context, Http2StreamFrame frame) {
      if (frame instanceof Http2DataFrame data) {
        received = received == null ? context.alloc().buffer() : received;
        received.writeBytes(data.content());
        takeMessages(context);
        if (data.isEndStream()) {
          end(new CallFailure(Code.INTERNAL, "the stream ended without a status"));
        }
      } else if (frame instanceof Http2HeadersFrame sent) {
        CharSequence http = sent.headers().status();
        if (http != null && !"200".contentEquals(http)) {
          end(new CallFailure(Code.UNAVAILABLE, "HTTP status " + http));
          context.close();
        } else if (sent.isEndStream()) {
          CharSequence status = sent.headers().get("grpc-status");
          end(CallFailure.of(status == null ? "none" : status, sent.headers().get("grpc-message")));
        }
      } else if (frame instanceof Http2ResetFrame reset) {
        end(wasReset(reset));
      }
    }

    private void takeMessages(ChannelHandlerContext context) {
      while (received.readableBytes() >= HEAD) {
        int begin = received.readerIndex();
        boolean compressed = received.getByte(begin) != 0;
        long length = received.getUnsignedInt(begin + 1);
        if (compressed || length > LONGEST) {
          String what = compressed ? "a compressed reply" : "a reply of " + length + " bytes";
          end(new CallFailure(compressed ? Code.INTERNAL : Code.RESOURCE_EXHAUSTED, what));
          context.close();
          return;
        }
        if (received.readableBytes() < HEAD + length) {
          return;
        }
        byte[] message = new byte[(int) length];
        received.skipBytes(HEAD).readBytes(message).discardSomeReadBytes();
        arrived.add(message);
      }
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
      if (event instanceof Http2ResetFrame reset) {
        end(wasReset(reset));
      }
    }

    private CallFailure wasReset(Http2ResetFrame reset) {
      return new CallFailure(Code.UNAVAILABLE, "the service reset the stream (" + reset.errorCode() + ")");
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
      end(new CallFailure(Code.UNAVAILABLE, "the connection ended"));
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable wrong) {
      end(new CallFailure(Code.UNAVAILABLE, wrong.toString(), wrong));
      context.close();
    }

    private void end(CallFailure why) {
      if (!over) {
        over = true;
        arrived.add(why);
      }
      if (received != null) {
        received.release();
        received = null;
      }
    }
  }
}
