#!/usr/bin/env bash
# Builds what a release consists of: a stripped static program for each platform, and
# their checksums. The same commit and the same Go give the same bytes, on any machine.
#
#   ./release.sh [DIRECTORY]     dist if none is given
#
#   PLATFORMS   what to build for (linux/amd64 linux/arm64 darwin/amd64 darwin/arm64)
#   VERSION     what "oversell version" says (git describe)
#   COMMIT      the same (git rev-parse HEAD)
set -euo pipefail

dist=${1:-dist}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || true)}
commit=${COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)}

mkdir -p "$dist"
for platform in $platforms; do
  GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0 "${GO:-go}" build \
    -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version -X main.commit=$commit" \
    -o "$dist/oversell-${platform/\//-}" ./cmd/oversell
done
cd "$dist"
if command -v sha256sum >/dev/null; then sum=sha256sum; else sum='shasum -a 256'; fi
$sum oversell-*-* >SHA256SUMS
cat SHA256SUMS
