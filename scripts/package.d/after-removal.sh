#!/bin/sh
# Runs after a removal. `purge` of the .deb takes everything that the server had; with the last .rpm (0) only its token
# goes. The user stays: its number may be on files elsewhere.
set -e
case $1 in
purge) rm -rf /etc/rocebench /var/lib/rocebench ;;
0)
	rm -f /etc/rocebench/token
	rmdir --ignore-fail-on-non-empty /etc/rocebench
	;;
esac
[ ! -d /run/systemd/system ] || systemctl daemon-reload
