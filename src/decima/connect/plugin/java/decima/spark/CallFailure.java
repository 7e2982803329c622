package decima.spark;

/** A call that ended with another status than OK; the text is for the log. */
final class CallFailure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Status codes of gRPC, in the order of their numbers. */
  enum Code {
    OK,
    CANCELLED,
    UNKNOWN,
    INVALID_ARGUMENT,
    DEADLINE_EXCEEDED,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    ABORTED,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
    INTERNAL,
    UNAVAILABLE,
    DATA_LOSS,
    UNAUTHENTICATED
  }

  private final Code code;

  CallFailure(Code code, String description) {
    this(code, description, null);
  }

  CallFailure(Code code, String description, Throwable cause) {
    super(description.isEmpty() ? code.name() : (code + ": " + description).replace('\n', ' '), cause);
    this.code = code;
  }

  Code code() {
    return code;
  }

  /** What a status says, as the service sends it after the last message: its number and a percent-encoded text. */
  static CallFailure of(CharSequence status, CharSequence message) {
    Code code = Code.UNKNOWN;
    try {
      int number = Integer.parseInt(status.toString());
      code = number >= 0 && number < Code.values().length ? Code.values()[number] : Code.UNKNOWN;
    } catch (NumberFormatException wrong) {
      return new CallFailure(code, "the status is '" + status + "'");
    }
    // A stream that ends without an error has no answer either.
    return code == Code.OK
        ? new CallFailure(Code.UNAVAILABLE, "the service ended the stream")
        : new CallFailure(code, message == null ? "" : decoded(message.toString()));
  }

  private static String decoded(String text) {
    try {
      return java.net.URLDecoder.decode(text.replace("+", "%2B"), java.nio.charset.StandardCharsets.UTF_8);
    } catch (IllegalArgumentException wrong) {
      return text;
    }
  }
}
