#!/bin/sh
# The guest's PID 1, run by busybox from the initramfs: modules, file systems, network, rxe devices, then the
# command; its output goes to virtio ports, its status to the folder shared with the host. The host's side is scripts/lab.
# Shared folder (/lab here, /run/lab for the command): settings, ROLE.sh, ROLE.up, ROLE.status, to-ROLE/.

export PATH=/bin:/usr/sbin:/usr/bin:/sbin

finish() { # STATUS
	echo "$1" >"/lab/$role.status.new"
	mv "/lab/$role.status.new" "/lab/$role.status"
	[ "$role" = client ] || wait_for_client_end
	poweroff -f
}

die() {
	echo "lab: $*" >/dev/console
	echo "$*" >"/lab/$role.error"
	poweroff -f
}

# By absolute path: busybox would run its own ip.
in_host() { chroot /host /usr/bin/env "$@"; }

/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
for module in /modules/*.ko; do
	insmod "$module" || echo "lab: cannot insert $module" >/dev/console
done

p9=trans=virtio,version=9p2000.L,msize=524288
mount -t 9p -o "$p9,cache=none" run /lab
role=$(sed 's/.*lab_role=\([a-z0-9]*\).*/\1/' /proc/cmdline)
lab_mtu='' lab_loss='' lab_out='' lab_mode='' lab_shell='' lab_servers=''
# shellcheck source=/dev/null
. /lab/settings

# The host's root, read-only, under a tmpfs that takes what the guest writes.
mount -t 9p -o "$p9,ro,cache=loose" root /lower || die "cannot mount the host's root over 9p"
mount -t tmpfs -o size=75% scratch /scratch
mkdir /scratch/upper /scratch/work
mount -t overlay -o lowerdir=/lower,upperdir=/scratch/upper,workdir=/scratch/work root /host || die "cannot mount the overlay"
mount -t proc proc /host/proc
mount -t sysfs sys /host/sys
mount -t devtmpfs dev /host/dev
mkdir -p /host/dev/pts /host/dev/shm
mount -t devpts -o mode=620,ptmxmode=666 pts /host/dev/pts
mount -t tmpfs shm /host/dev/shm
mount -t tmpfs run /host/run
mkdir -p /host/run/lab /host/run/lock "/host$lab_out"
mount -o bind /lab /host/run/lab
mount -t 9p -o "$p9,cache=none" out "/host$lab_out" || die "cannot mount the out folder"
ln -sf /proc/self/fd /dev/fd
ln -sf /proc/self/fd/0 /dev/stdin
ln -sf /proc/self/fd/1 /dev/stdout
ln -sf /proc/self/fd/2 /dev/stderr

add_rxe() { # PAIRS: DEVICE=NETDEV
	for pair in "$@"; do
		echo "link add ${pair%=*} type rxe netdev ${pair#*=}"
	done | in_host rdma --batch /dev/stdin || die "cannot add $*"
}

configure() { in_host ip "$@" -batch - || die "cannot configure the network"; }

mac() { cat "/sys/class/net/$1/address"; }

# Two rxe devices on the two ends of a veth. Between addresses of one machine the kernel would take a short cut
# that no rxe device sees, so packets from one end's address to the other's are routed over the wire.
one_host_network() {
	echo "link add v0 mtu $lab_mtu type veth peer name v1 mtu $lab_mtu" | configure
	echo 1 >/proc/sys/net/ipv4/conf/v0/accept_local
	echo 1 >/proc/sys/net/ipv4/conf/v1/accept_local
	for end in 0 1; do
		echo "link set v$end up"
		echo "address add 192.0.2.$((1 + end))/24 dev v$end"
		echo "address add 2001:db8::$((1 + end))/64 dev v$end nodad"
	done | configure
	for family in 4 6; do
		case $family in 4) net=192.0.2. ;; 6) net=2001:db8:: ;; esac
		for end in 0 1; do
			far=$((1 - end))
			echo "rule add pref $((10 + end)) from $net$((1 + end)) to $net$((1 + far)) iif lo lookup $((100 + end))"
			echo "route add $net$((1 + far)) dev v$end table $((100 + end))"
			echo "neigh replace $net$((1 + far)) lladdr $(mac v$far) dev v$end nud permanent"
		done | configure -$family
		# Those rules come before the table of local addresses.
		printf 'rule add pref 20 lookup local\nrule del pref 0\n' | configure -$family
	done
	add_rxe rxe0=v0 rxe1=v1
	printf '192.0.2.1 lab0 server\n192.0.2.2 lab1\n2001:db8::1 lab0-6 server6\n2001:db8::2 lab1-6\n' >>/host/etc/hosts
}

network_of_several() {
	case $role in server) n=1 ;; client) n=2 ;; *) n=3 ;; esac
	# The default, fq_codel, drops packets of a sender that is faster than an emulated wire.
	echo pfifo_fast >/proc/sys/net/core/default_qdisc
	printf '%s\n' "link set eth0 mtu $lab_mtu txqueuelen 10000 up" "address add 10.77.0.$n/24 dev eth0" "address add fd77::$n/64 dev eth0 nodad" | configure
	add_rxe rxe0=eth0
	printf '10.77.0.1 server\n10.77.0.2 client\n10.77.0.3 server2\nfd77::1 server6\nfd77::2 client6\nfd77::3 server26\n' >>/host/etc/hosts
}

start_network() {
	# Addresses are usable, and so in the GID table, at once.
	echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
	echo 0 >/proc/sys/net/ipv6/conf/default/router_solicitations
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	case $lab_mode in
	one) hostname lab0 ;;
	several) hostname "$role" ;;
	esac
	ip link set lo up
	cp /host/etc/hosts /scratch/hosts 2>/dev/null || echo '127.0.0.1 localhost' >/scratch/hosts
	mount -o bind /scratch/hosts /host/etc/hosts
	case $lab_mode in
	one) one_host_network && devices='v0 v1' ;;
	several) network_of_several && devices=eth0 ;;
	esac
	[ "$lab_loss" = 0 ] || for device in $devices; do
		in_host tc qdisc add dev "$device" root netem limit 100000 loss "$lab_loss%" || die "cannot set loss $lab_loss% on $device"
	done
}

port() { # NAME: the character device of a virtio port
	for p in /sys/class/virtio-ports/*; do
		[ "$(cat "$p/name")" != "$1" ] || echo "/dev/${p##*/}"
	done
}

# Commands that lab-peer left for this guest.
serve_peer() {
	for request in /lab/to-"$role"/*.cmd; do
		[ -e "$request" ] || continue
		base=${request%.cmd}
		mv "$request" "$base.sh"
		(
			in_host /bin/bash "/run/lab/to-$role/${base##*/}.sh" >"$base.out" 2>&1 </dev/null
			echo $? >"$base.status.new"
			mv "$base.status.new" "$base.status"
		) &
	done
}

wait_for_client_end() {
	while [ ! -e /lab/client.status ]; do
		serve_peer
		sleep 0.1
	done
}

kill_others() { # PIDS that stay
	for pid in /proc/[0-9]*; do
		pid=${pid##*/}
		case " 1 $* " in *" $pid "*) ;; *) kill -9 "$pid" 2>/dev/null ;; esac
	done
}

run_command() {
	# Pipes, so that the command may open /dev/stdout again, which a virtio port would refuse.
	mkfifo /stdout.pipe
	cat </stdout.pipe >"$(port lab.stdout)" &
	copiers=$!
	if [ "$role" != client ]; then
		setsid chroot /host /bin/bash "/run/lab/$role.sh" >/stdout.pipe 2>&1 </dev/null &
	else
		mkfifo /stderr.pipe
		cat </stderr.pipe >"$(port lab.stderr)" &
		copiers="$copiers $!"
		setsid chroot /host /bin/bash /run/lab/client.sh >/stdout.pipe 2>/stderr.pipe </dev/null &
	fi
	command=$!
	: >"/lab/$role.started"
	if [ "$role" != client ]; then
		wait_for_client_end
		kill -TERM "-$command" 2>/dev/null
		for _ in $(seq 50); do
			kill -0 "-$command" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "-$command" 2>/dev/null
	elif [ "$lab_mode" = several ]; then
		while kill -0 "$command" 2>/dev/null; do
			serve_peer
			sleep 0.1
		done
	fi
	wait "$command"
	status=$?
	# shellcheck disable=SC2086 # a list of process ids
	kill_others $copiers
	# shellcheck disable=SC2086
	wait $copiers
	finish "$status"
}

run_shell() {
	# The session leader's open makes hvc0 its controlling terminal.
	setsid sh -c 'exec chroot /host /bin/bash /run/lab/client.sh </dev/hvc0 >/dev/hvc0 2>&1'
	finish $?
}

# Seconds of the host's clock, by which it stamps the files of the shared folder, and of this guest's.
both_clocks() {
	echo >"/lab/$role.clock"
	read -r uptime _ </proc/uptime
	echo "$(in_host stat -c %.3Y "/run/lab/$role.clock") $uptime"
}

# On a busy host the kernel measures its time-stamp counter wrongly at boot, and all times here would run too fast or too
# slow for as long as the guest lives. The ACPI timer takes longer to read, and is right.
check_clock() { # HOST GUEST: both_clocks of a while ago
	# shellcheck disable=SC2046 # two words
	set -- "$@" $(both_clocks)
	rate=$(echo "$@" | awk '{ print ($4 - $2) / ($3 - $1) }')
	echo "$rate" | awk '{ exit !($1 < 0.95 || $1 > 1.05) }' || return
	# Its timers are as wrong, which no other clock source mends: it would do nothing but serve their interrupts.
	echo "$rate" | awk '{ exit !($1 < 0.5 || $1 > 2) }' && die "the guest's clock runs at $rate of this machine's, which is too busy: end what keeps it busy, and try again"
	echo "lab: $role's clock runs at $rate of the host's; taking acpi_pm" >/dev/console
	echo acpi_pm >/sys/devices/system/clocksource/clocksource0/current_clocksource || die "the guest's clock is wrong: end what keeps this machine busy, and try again"
	date -s "@$3" >/dev/null
	echo "$rate" >"/lab/$role.clock-rate"
}

clocks=$(both_clocks)
start_network
sleep 1
# shellcheck disable=SC2086 # two words
check_clock $clocks
cut -d ' ' -f 1 /proc/uptime >"/lab/$role.up.new"
mv "/lab/$role.up.new" "/lab/$role.up"
if [ "$role" = client ]; then
	for server in $lab_servers; do
		while [ ! -e "/lab/$server.started" ]; do sleep 0.1; done
	done
fi
case $lab_mode$lab_shell in
*yes) run_shell ;;
*) run_command ;;
esac
