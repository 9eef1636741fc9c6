#!/bin/sh
# Runs after an installation or an update of the .deb or the .rpm: makes the server's user and token.
set -e
getent group rocebench >/dev/null || groupadd --system rocebench
getent passwd rocebench >/dev/null ||
	useradd --system --gid rocebench --no-create-home --home-dir /var/lib/rocebench --shell /usr/sbin/nologin rocebench
if [ ! -e /etc/rocebench/token ]; then
	(umask 077 && head -c 24 /dev/urandom | base64 >/etc/rocebench/token.part)
	chown root:rocebench /etc/rocebench/token.part
	chmod 640 /etc/rocebench/token.part
	mv /etc/rocebench/token.part /etc/rocebench/token
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart rocebench.service || true
fi
