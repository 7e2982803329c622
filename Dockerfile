# Command line and scheduling service, without training and plots:
#   docker build -t decima . && docker run --rm decima compare fair decima --jobs embedded:n=5
#   docker run --rm -p 50051:50051 -e DECIMA_SERVICE_TOKEN decima serve --host 0.0.0.0 --scheduler decima
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY models models
RUN python -m venv --without-pip /opt/decima \
    && pip --python /opt/decima/bin/python install --no-cache-dir --no-compile ".[service]"

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 decima
COPY --from=build /opt/decima /opt/decima
ENV PATH=/opt/decima/bin:$PATH \
    PYTHONUNBUFFERED=1
# The first run compiles, which takes a minute; the image has the functions of simulator and policy already, and the bytecode
# of what these two commands import.
RUN export HOME=/home/decima \
    && decima simulate --jobs embedded:n=2 --scheduler decima --executors 5 \
    && decima serve --check --scheduler decima --also fair --also weighted_fair \
    && chown -R decima /home/decima
USER decima
WORKDIR /home/decima
EXPOSE 50051
ENTRYPOINT ["decima"]
CMD ["--help"]
