#!/usr/bin/env bash
# Installs missing packages that the tests need. Go downloads its own modules.
set -euo pipefail

missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null || missing+=(mariadb-server-core mariadb-client-core)
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
# Report pages are tested in a browser.
command -v chromium >/dev/null || missing+=(chromium)
# A claim about PHP's persistent connections.
command -v php >/dev/null && php -m | grep -ci '^redis$' >/dev/null || missing+=(php-cli php-redis)
# A Python program that writes a history.
command -v python3 >/dev/null || missing+=(python3)
# A system in Python.
/usr/bin/python3 -c "import redis" 2>/dev/null || missing+=(python3-redis)
# The locks and queues of published libraries (docs/peers.md).
/usr/bin/python3 -c "import rq" 2>/dev/null || missing+=(python3-rq)
/usr/bin/python3 -c "import celery" 2>/dev/null || missing+=(python3-celery)
[ -e /usr/share/php/Symfony/Component/Lock/autoload.php ] || missing+=(php-symfony-lock)
[ -e /usr/share/php/Illuminate/Redis/autoload.php ] || missing+=(php-illuminate-cache php-illuminate-redis)
ruby -e "require 'sidekiq'" 2>/dev/null || missing+=(ruby-sidekiq)
# A library for Node.js.
command -v node >/dev/null || missing+=(nodejs)
# The library that steps programs is compiled on demand.
command -v cc >/dev/null || missing+=(gcc libc6-dev)
# Containers are tested only if a Docker daemon runs. This script does not install one.
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
  echo "setup: no apt-get: please install ${missing[*]}" >&2
  exit 1
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
# Prevents the packages from starting their servers, which the tests do not need.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
