# asched as an image. Two stages: what builds is left behind; what runs has no compiler, no pip cache.
#
# Pinning: the tag below moves when Python is patched. To pin the base by digest, look it up where
# the registry is reachable (docker buildx imagetools inspect python:3.13-slim) and build with
#   docker build --build-arg BASE=python:3.13-slim@sha256:DIGEST .
# A base of one's own needs `python` (3.11 to 3.13) with venv, nothing else; docs/operations.md makes one.
# Everything from PyPI is pinned by hash in deploy/*.lock (`make lock` writes them anew).
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /tools && python -m venv --without-pip /asched
COPY deploy/build.lock deploy/requirements.lock deploy/
# Dependencies first: this layer is made again only when a lock file changes.
RUN /tools/bin/pip install --require-hashes --only-binary=:all: -r deploy/build.lock \
 && /tools/bin/pip --python /asched/bin/python install \
      --require-hashes --only-binary=:all: --no-compile -r deploy/requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY asched asched
RUN /tools/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /wheel . \
 && /tools/bin/pip --python /asched/bin/python install --no-deps --no-compile /wheel/*.whl \
 && python -m compileall -q --invalidation-mode unchecked-hash /asched/lib
# What is inside, as CycloneDX; the tool stays behind with this stage.
RUN /tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
      --output-file /asched/sbom.cdx.json /asched/bin/python

FROM ${BASE} AS run
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
# Manifests written for kube-scheduler start it by name; only the image has to be swapped. `exec`
# makes the scheduler process 1, so that signals reach it.
RUN printf '#!/bin/sh\nexec /asched/bin/asched run "$@"\n' > /usr/local/bin/kube-scheduler \
 && chmod 0755 /usr/local/bin/kube-scheduler
COPY --from=build /asched /asched
COPY config /etc/asched/examples
# The official images have no bytecode of Python's own modules, and nothing here can write any.
RUN python -m compileall -q --invalidation-mode unchecked-hash -x site-packages \
      "$(python -c 'import os; print(os.path.dirname(os.__file__))')"
# Numeric, so that runAsNonRoot can be checked. Nothing is written: the root may be read-only.
USER 65532:65532
EXPOSE 10259
STOPSIGNAL SIGTERM
# For engines that look at it; Kubernetes has the probes of deploy/base.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["asched", "healthcheck"]
ENTRYPOINT ["asched"]
CMD ["run"]
