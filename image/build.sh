#!/usr/bin/env bash
# Builds a small Redis image from the redis-server of this machine, without a
# registry: the programs, the libraries they load, and a busybox for a shell. It
# behaves like the official image, except that redis-server runs as root.
#
#   image/build.sh [NAME:TAG]     oversell-redis:local if none is given
#
# An image that is up to date is left alone.
set -euo pipefail

image=${1:-oversell-redis:local}
here=$(cd "$(dirname "$0")" && pwd)

fail() {
  echo "image: $*" >&2
  exit 1
}

for program in redis-server redis-cli busybox; do
  command -v "$program" >/dev/null ||
    fail "$program is missing: install the packages redis-server, redis-tools and busybox-static (make setup does)"
done
command -v docker >/dev/null || fail "the docker command is missing"
docker version >/dev/null 2>&1 || fail "no Docker daemon answers (see: docker version)"

# Two at once would leave an image without a name.
exec 9<"$here"
if command -v flock >/dev/null; then flock 9; fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,data,etc,proc,root,tmp}
chmod 1777 "$root/tmp"
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"

# libraries prints the paths at which a program looks for what it loads, the
# loader included. A static program has none.
libraries() {
  { ldd "$1" 2>/dev/null || true; } | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }'
}

for program in redis-server redis-cli busybox; do
  path=$(command -v "$program")
  cp -L "$path" "$root/bin/$program"
  for library in $(libraries "$path"); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
done
ln -s redis-server "$root/bin/redis-sentinel"
for applet in sh awk cat chmod chown cp cut date echo env expr find free grep head hostname id kill ls mkdir mv nc \
  netstat printf ps rm sed seq sleep sort tail test time timeout top tr true uname wc wget xargs; do
  ln -s busybox "$root/bin/$applet"
done
cp "$here/docker-entrypoint.sh" "$root/bin/docker-entrypoint.sh"
chmod 755 "$root"/bin/docker-entrypoint.sh

version=$("$root/bin/redis-server" --version | sed -n 's/.*[ ]v=\([0-9.]*\).*/\1/p')
[ -n "$version" ] || fail "redis-server --version tells no version"

# The same files and the same script give the same archive and the same sum.
archive() {
  tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c .
}
contents=$({ archive && cat "$here/build.sh"; } | sha256sum | cut -d' ' -f1)
label() {
  docker image inspect --format '{{ index .Config.Labels "oversell.contents" }}' "$image" 2>/dev/null || true
}
if [ "$(label)" = "$contents" ]; then
  echo "image: $image is up to date (Redis $version)"
  exit 0
fi

previous=$(docker image inspect --format '{{ .Id }}' "$image" 2>/dev/null || true)
archive | docker import \
  --change 'ENV PATH=/bin' \
  --change "ENV REDIS_VERSION=$version" \
  --change "LABEL oversell.contents=$contents" \
  --change 'VOLUME /data' \
  --change 'WORKDIR /data' \
  --change 'EXPOSE 6379' \
  --change 'ENTRYPOINT ["docker-entrypoint.sh"]' \
  --change 'CMD ["redis-server"]' \
  - "$image" >/dev/null || fail "docker import failed"
# What had the name before is of no use to anybody, unless it has another name or
# a container.
if [ -n "$previous" ] && [ -z "$(docker image inspect --format '{{ range .RepoTags }}{{ . }}{{ end }}' "$previous" 2>/dev/null)" ]; then
  docker image rm "$previous" >/dev/null 2>&1 || true
fi
echo "image: $image is built (Redis $version)"
