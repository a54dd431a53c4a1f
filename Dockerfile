# An image with nothing in it but oversell. The program is built outside:
#
#   make docker                                        builds it, and the image oversell
#   docker run --rm oversell run                       a demonstration, on the emulation
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" oversell gate gate.yaml
#
# There is no redis-server in it: give it --target redis://…, with --network as needed.
FROM scratch
ARG TARGETARCH=amd64
COPY dist/oversell-linux-${TARGETARCH} /oversell
# A /tmp and a /work that every user can write to, and the roots for TLS.
COPY dist/root/ /
WORKDIR /work
USER 65534:65534
ENTRYPOINT ["/oversell"]
