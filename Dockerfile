# syntax=docker/dockerfile:1

# Any image that is based on Debian and has Python, its headers, pip and venv.
ARG BASE=python:3.13-slim
FROM ${BASE} AS builder
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml setup.py README.md LICENSE /src/
COPY compat /src/compat
COPY console /src/console
COPY headrace /src/headrace
COPY metrics /src/metrics
COPY persistence /src/persistence
COPY protocol /src/protocol
COPY testkit /src/testkit
COPY policies /src/policies
COPY regions /src/regions
COPY server /src/server
COPY storage /src/storage
COPY docker/build* /src/docker/
RUN /src/docker/build.sh /src /opt/headrace

FROM ${BASE}
RUN groupadd --system --gid 999 headrace \
    && useradd --system --uid 999 --gid headrace --home-dir /data --shell /usr/sbin/nologin headrace \
    && install --directory --owner=headrace --group=root --mode=0775 /data
RUN apt-get update \
    && apt-get install -y --no-install-recommends redis-tools \
    && rm -rf /var/lib/apt/lists/*
COPY --from=builder /opt/headrace /opt/headrace
COPY docker/entrypoint.sh docker/healthcheck.py /opt/headrace/docker/
ENV PATH=/opt/headrace/bin:$PATH
# The image of Python has its modules as text. One start and one health check compile those they read,
# which halves the time that each takes from then on.
RUN ln -s /opt/headrace/docker/entrypoint.sh /opt/headrace/bin/redis-server \
    && { headrace --port 0 --unixsocket /tmp/headrace --save '' & } \
    && timeout 60 sh -c "until HEADRACE_PID=$! python -P /opt/headrace/docker/healthcheck.py; do sleep 0.1; done" \
    && redis-cli -s /tmp/headrace shutdown && wait $!
VOLUME /data
WORKDIR /data
EXPOSE 6379
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --start-interval=0.5s --retries=3 \
    CMD ["/opt/headrace/bin/python", "-P", "/opt/headrace/docker/healthcheck.py"]
ENTRYPOINT ["/opt/headrace/docker/entrypoint.sh"]
CMD ["headrace"]
