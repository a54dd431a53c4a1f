#!/bin/sh
# As in the official image: options and configuration files are redis-server's,
# anything else is a command.
set -e
case "$1" in
'' | -* | *.conf) set -- redis-server "$@" ;;
esac
exec "$@"
