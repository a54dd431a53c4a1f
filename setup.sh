#!/usr/bin/env bash
# Installs what the tests need and this machine lacks. Go fetches its own modules.
set -euo pipefail

missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null || missing+=(mariadb-server-core mariadb-client-core)
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
# The pages of reports are tested in a browser.
command -v chromium >/dev/null || missing+=(chromium)
# One claim is about PHP's persistent connections.
command -v php >/dev/null && php -m | grep -ci '^redis$' >/dev/null || missing+=(php-cli php-redis)
# A program in another language writes a history.
command -v python3 >/dev/null || missing+=(python3)
# Systems outside of oversell are tested with one in Python.
/usr/bin/python3 -c "import redis" 2>/dev/null || missing+=(python3-redis)
# The locks and queues of published libraries (docs/peers.md).
/usr/bin/python3 -c "import rq" 2>/dev/null || missing+=(python3-rq)
/usr/bin/python3 -c "import celery" 2>/dev/null || missing+=(python3-celery)
[ -e /usr/share/php/Symfony/Component/Lock/autoload.php ] || missing+=(php-symfony-lock)
[ -e /usr/share/php/Illuminate/Redis/autoload.php ] || missing+=(php-illuminate-cache php-illuminate-redis)
ruby -e "require 'sidekiq'" 2>/dev/null || missing+=(ruby-sidekiq)
# One of them is for Node.js.
command -v node >/dev/null || missing+=(nodejs)
# Programs are stepped by a library that is compiled when it is needed.
command -v cc >/dev/null || missing+=(gcc libc6-dev)
# Containers are tested only where a Docker daemon runs. To install one is not for
# a script like this.
if command -v docker >/dev/null && timeout 10 docker version >/dev/null 2>&1; then
  command -v redis-cli >/dev/null || missing+=(redis-tools)
  command -v busybox >/dev/null || missing+=(busybox-static)
  command -v docker-compose >/dev/null || docker compose version >/dev/null 2>&1 || missing+=(docker-compose)
fi

if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: nothing is missing"
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "setup: please install: ${missing[*]}" >&2
  exit 1
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
# The packages would start servers of their own; nothing here needs them.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
