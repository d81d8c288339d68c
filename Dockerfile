# The labelling page of cilf, and every command of it.
#
#   docker build -t cilf .                              torch for processors
#   docker build -t cilf:cuda --build-arg TORCH=cu130 . torch for NVIDIA GPUs
#
# docs/deployment.md says how to run it.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim-trixie AS build
# The kind of torch: a folder of https://download.pytorch.org/whl, such as cpu or cu130.
ARG TORCH=cpu
ARG EXTRAS=console,data,onnx,postgres,pretrained,report,text,watch
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
RUN python -m venv /opt/cilf
COPY constraints.txt ./
# Without its dependencies, which come from PyPI in the next step, at the versions of constraints.txt.
RUN /opt/cilf/bin/pip install --no-deps --index-url "https://download.pytorch.org/whl/${TORCH}" \
    "$(grep '^torch==' constraints.txt)"
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/cilf/bin/pip install --constraint constraints.txt ".[${EXTRAS}]"

FROM python:${PYTHON}-slim-trixie
ENV PATH=/opt/cilf/bin:$PATH PYTHONUNBUFFERED=1 CILF_CACHE=/var/lib/cilf/cache
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin cilf \
    && install --directory --owner=cilf --group=cilf /var/lib/cilf /data
COPY --from=build /opt/cilf /opt/cilf
USER 10001:10001
WORKDIR /var/lib/cilf
# The store is a folder in it, so that 'cilf restore' can put one there.
VOLUME /var/lib/cilf
EXPOSE 8377
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8377/healthz', timeout=5)"]
CMD ["cilf", "console", "--store", "/var/lib/cilf/store", "--host", "0.0.0.0", "--port", "8377", "--token-file", "/run/secrets/cilf_token", "--data", "/data"]
