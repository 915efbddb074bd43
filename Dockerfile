# asched as an image, for amd64 and arm64. Two stages: the second has no compiler, no pip, no shell script.
#
# Pinning: the tag below moves when Python is patched. To pin the base by digest, read the digest where the
# registry is reachable (docker buildx imagetools inspect python:3.13-slim) and build with
#   docker build --build-arg BASE=python:3.13-slim@sha256:DIGEST .
# A base of your own needs `python` (3.11 to 3.13) with venv; docs/install.md makes one. RUN_BASE, the base
# of the image itself, needs `python` at the same path and nothing else.
# Everything from PyPI is pinned by hash in deploy/*.lock, for both architectures (`make lock` renders them).
# EXTRAS adds optional dependencies: --build-arg EXTRAS=load has SciPy, for LowRiskOverCommitment.
ARG BASE=python:3.13-slim
ARG RUN_BASE=${BASE}

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /tools && python -m venv --without-pip /asched
COPY deploy/build.lock deploy/requirements.lock deploy/extra-load.lock deploy/
ARG EXTRAS=
# Dependencies first: this layer is made again only when a lock file or EXTRAS changes.
RUN /tools/bin/pip install --require-hashes --only-binary=:all: -r deploy/build.lock \
 && for lock in requirements ${EXTRAS:+extra-${EXTRAS}}; do \
      /tools/bin/pip --python /asched/bin/python install --no-deps \
        --require-hashes --only-binary=:all: --no-compile -r "deploy/${lock}.lock" || exit 1; \
    done \
 && find /asched/lib -type d -name tests -prune -exec rm -rf {} +
COPY pyproject.toml README.md LICENSE ./
COPY asched asched
RUN /tools/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /wheel . \
 && /tools/bin/pip --python /asched/bin/python install --no-deps --no-compile /wheel/*.whl \
 && python -m compileall -q --invalidation-mode unchecked-hash /asched/lib
# What is inside, as CycloneDX; the tool stays behind with this stage.
RUN /tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
      --output-file /asched/sbom.cdx.json /asched/bin/python

FROM ${RUN_BASE} AS run
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=
LABEL org.opencontainers.image.title="asched" \
      org.opencontainers.image.description="A second scheduler for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
ENV PATH=/asched/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/nonexistent
COPY --from=build /asched /asched
# Manifests written for kube-scheduler start it by name; only the image has to be replaced.
COPY deploy/kube-scheduler /usr/local/bin/kube-scheduler
# The official images have no bytecode of Python's own modules, and no process here can write any. They have pip.
RUN rm -rf /usr/local/bin/pip* /usr/local/bin/idle* /usr/local/lib/python3*/site-packages/pip* \
      /usr/local/lib/python3*/ensurepip /usr/local/lib/python3*/idlelib \
 && python -m compileall -q --invalidation-mode unchecked-hash -x site-packages \
      "$(python -c 'import os; print(os.path.dirname(os.__file__))')"
# Numeric, so that runAsNonRoot can be checked. Nothing is written: the root may be read-only.
USER 65532:65532
EXPOSE 10259
STOPSIGNAL SIGTERM
# For engines that evaluate it; Kubernetes has the probes of deploy/base.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["asched", "healthcheck"]
ENTRYPOINT ["asched"]
CMD ["run"]
