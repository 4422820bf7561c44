# hone on the processor: docker build -t hone . && docker run --rm -v "$PWD:/work" hone model.onnx
ARG BUILD_IMAGE=debian:12-slim
ARG RUN_IMAGE=debian:12-slim

FROM ${BUILD_IMAGE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev cmake ninja-build pkg-config dpkg-dev file \
    make git libjansson-dev libpng-dev libjpeg-dev zlib1g-dev libsqlite3-dev libpcre2-dev libmicrohttpd-dev && rm -rf /var/lib/apt/lists/*
COPY . /source
WORKDIR /source
RUN cmake --preset release -DHONE_TESTS=OFF && cmake --build build && sh tools/deb.sh build /packages

FROM ${RUN_IMAGE}
COPY --from=build /packages/*.deb /packages/
RUN apt-get update && apt-get install -y --no-install-recommends /packages/*.deb && rm -rf /var/lib/apt/lists/* /packages
# Any user may run it; what is measured once is kept as long as the container lives.
ENV XDG_CACHE_HOME=/tmp/cache XDG_DATA_HOME=/tmp/data
WORKDIR /work
ENTRYPOINT ["hone"]
CMD ["doctor"]
