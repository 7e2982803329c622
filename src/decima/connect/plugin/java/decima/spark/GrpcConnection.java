package decima.spark;

import decima.spark.CallFailure.Code;
import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.handler.codec.http2.Http2StreamChannel;
import io.netty.handler.codec.http2.Http2StreamChannelBootstrap;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolNames;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslProvider;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.Future;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import org.sparkproject.spark_core.protobuf.DynamicMessage;

/**
 * A connection to the service: gRPC over the HTTP/2 of netty. All Sparks have netty under its own name, while grpc-java is
 * part of none before 4.0, and of those under names of their own. May be used by several threads.
 */
final class GrpcConnection {
  private static final int WINDOW = 1 << 20;

  private final Settings settings;
  private final String authorization;
  private final SslContext tls;
  private final EventLoopGroup threads = new NioEventLoopGroup(1, new DefaultThreadFactory("decima-grpc", true));
  private Channel channel;
  private boolean closed;

  /**
   * Prepares it; nothing is sent yet.
   *
   * @throws IOException when a certificate or token cannot be read
   */
  GrpcConnection(Settings settings) throws IOException {
    this.settings = settings;
    String token = settings.tokenFile();
    authorization = token.isEmpty() ? "" : "Bearer " + Files.readString(Path.of(token)).strip();
    tls = settings.tlsAuthority().isEmpty() ? null : tls(new File(settings.tlsAuthority()));
  }

  private static SslContext tls(File authority) throws SSLException {
    return SslContextBuilder.forClient()
        .sslProvider(SslProvider.JDK)
        .trustManager(authority)
        .applicationProtocolConfig(
            new ApplicationProtocolConfig(
                ApplicationProtocolConfig.Protocol.ALPN,
                ApplicationProtocolConfig.SelectorFailureBehavior.NO_ADVERTISE,
                ApplicationProtocolConfig.SelectedListenerFailureBehavior.ACCEPT,
                ApplicationProtocolNames.HTTP_2))
        .build();
  }

  /** One call with one answer. */
  DynamicMessage call(Messages.Method method, DynamicMessage request, long timeoutMs) {
    GrpcStream stream = open(method, timeoutMs);
    try {
      return stream.ask(request, timeoutMs);
    } finally {
      stream.close();
    }
  }

  /**
   * Begins a stream of calls, over a new connection if there is none that works.
   *
   * @param timeoutMs longest wait for a connection
   */
  GrpcStream open(Messages.Method method, long timeoutMs) {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    // A service that is ending refuses streams before it ends the connection.
    boolean fresh = false;
    while (true) {
      Channel over;
      synchronized (this) {
        fresh |= channel == null || !channel.isActive();
        over = fresh ? connected(deadline) : channel;
      }
      GrpcStream stream = new GrpcStream(method);
      Future<Http2StreamChannel> opened = new Http2StreamChannelBootstrap(over).handler(stream.handler()).open();
      if (wait(opened, deadline)) {
        stream.begin(opened.getNow(), headers(method));
        return stream;
      }
      if (fresh || !opened.isDone()) {
        throw failed(opened, "no stream to the service");
      }
      fresh = true;
    }
  }

  private Channel connected(long deadline) {
    if (closed) {
      throw new CallFailure(Code.CANCELLED, "the connection was closed");
    }
    if (channel != null) {
      channel.close();
    }
    Bootstrap bootstrap =
        new Bootstrap()
            .group(threads)
            .channel(NioSocketChannel.class)
            .option(ChannelOption.TCP_NODELAY, true)
            .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, (int) Math.min(Integer.MAX_VALUE, remainingMs(deadline)))
            .handler(
                new ChannelInitializer<Channel>() {
                  @Override
                  protected void initChannel(Channel fresh) {
                    prepare(fresh);
                  }
                });
    Future<Void> reached = bootstrap.connect(settings.host(), settings.port());
    if (!wait(reached, deadline)) {
      throw failed(reached, "no connection");
    }
    Channel made = ((io.netty.channel.ChannelFuture) reached).channel();
    SslHandler secured = made.pipeline().get(SslHandler.class);
    if (secured != null && !wait(secured.handshakeFuture(), deadline)) {
      made.close();
      throw failed(secured.handshakeFuture(), "no TLS");
    }
    channel = made;
    return made;
  }

  private void prepare(Channel fresh) {
    if (tls != null) {
      SSLEngine engine = tls.newEngine(fresh.alloc(), settings.host(), settings.port());
      SSLParameters parameters = engine.getSSLParameters();
      parameters.setEndpointIdentificationAlgorithm("HTTPS"); // the certificate must be that of this host
      engine.setSSLParameters(parameters);
      fresh.pipeline().addLast(new SslHandler(engine));
    }
    Http2Settings asked = Http2Settings.defaultSettings().pushEnabled(false).initialWindowSize(WINDOW);
    fresh.pipeline()
        .addLast(Http2FrameCodecBuilder.forClient().initialSettings(asked).gracefulShutdownTimeoutMillis(0).build())
        // The service opens no streams.
        .addLast(new Http2MultiplexHandler(new ChannelInboundHandlerAdapter()))
        .addLast(
            new ChannelInboundHandlerAdapter() {
              @Override
              public void exceptionCaught(ChannelHandlerContext context, Throwable wrong) {
                context.close(); // every stream then ends, and says so
              }
            });
  }

  private Http2Headers headers(Messages.Method method) {
    Http2Headers headers =
        new DefaultHttp2Headers()
            .method("POST")
            .scheme(tls == null ? "http" : "https")
            .authority(settings.address())
            .path(method.path())
            .add("te", "trailers")
            .add("content-type", "application/grpc")
            .add("user-agent", "decima-spark");
    return authorization.isEmpty() ? headers : headers.add("authorization", authorization);
  }

  /** Ends it, and all its streams. */
  synchronized void close() {
    closed = true;
    if (channel != null) {
      channel.close();
    }
    threads.shutdownGracefully(0, 1, TimeUnit.SECONDS);
  }

  private static boolean wait(Future<?> future, long deadline) {
    try {
      return future.await(remainingMs(deadline), TimeUnit.MILLISECONDS) && future.isSuccess();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new CallFailure(Code.CANCELLED, "interrupted while waiting for the service", interrupted);
    }
  }

  private static CallFailure failed(Future<?> future, String what) {
    Throwable cause = future.cause();
    return cause == null
        ? new CallFailure(Code.DEADLINE_EXCEEDED, what + " in time")
        : new CallFailure(Code.UNAVAILABLE, what + ": " + cause.getMessage(), cause);
  }

  private static long remainingMs(long deadline) {
    return Math.max(1, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()));
  }
}
