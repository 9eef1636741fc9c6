#!/bin/sh
# Runs before the removal of the .deb (`remove`) or the last .rpm (0): ends the server.
set -e
case $1 in remove | 0)
	[ ! -d /run/systemd/system ] || systemctl stop rocebench.service || true
	! command -v systemctl >/dev/null || systemctl disable --quiet rocebench.service || true
	;;
esac
