# syntax=docker/dockerfile:1
# The server in an image of its own: see docs/docker.md. Runs as a user, from a root that is never written to.
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /src
# Of pyproject.toml, with spaces between: a team's servers need postgresql, and cluster for nodes (docs/team.md).
ARG EXTRAS="otel"
RUN pip install --no-cache-dir --disable-pip-version-check uv==0.9.30
# What was locked is installed before the sources come in, so that a change of ours rebuilds little.
COPY pyproject.toml uv.lock ./
RUN uv export --quiet --frozen --no-dev --no-emit-project $(printf -- '--extra %s ' ${EXTRAS}) --output-file /tmp/requirements.txt \
    && uv venv --quiet /opt/serena-central \
    && uv pip install --quiet --no-cache --compile-bytecode --require-hashes \
        --python /opt/serena-central/bin/python --requirement /tmp/requirements.txt
COPY README.md ARCHITECTURE.md CHANGELOG.md LICENSE ./
COPY dashboard dashboard
COPY migrations migrations
COPY serena_central serena_central
RUN uv build --quiet --wheel --out-dir /tmp/dist \
    && uv pip install --quiet --no-cache --compile-bytecode --no-deps \
        --python /opt/serena-central/bin/python /tmp/dist/*.whl

FROM python:${PYTHON}
# The owner of the projects' files: edits are written by this user, and have it as their owner.
ARG UID=1000
ARG GID=1000
RUN groupadd --gid "${GID}" serena \
    && useradd --uid "${UID}" --gid "${GID}" --home-dir /data/user --no-create-home --shell /usr/sbin/nologin serena \
    && install --directory --mode 0700 --owner "${UID}" --group "${GID}" /data /data/user
COPY --from=build /opt/serena-central /opt/serena-central
ENV PATH=/opt/serena-central/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/data/user \
    SERENA_CENTRAL_HOME=/data \
    SERENA_CENTRAL_SERVER_HOST=0.0.0.0 \
    SERENA_CENTRAL_ALLOWED_ROOTS=/projects
USER ${UID}:${GID}
WORKDIR /data
VOLUME /data
EXPOSE 24280
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s --retries=3 CMD ["serena-central", "status", "--json"]
CMD ["serena-central", "serve"]
