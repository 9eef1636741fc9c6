# shellcheck shell=bash
# One run: starts the guests, carries their output, waits for them, and leaves nothing behind. Sourced by
# scripts/lab, whose options are its input; knows nothing of packages and of where the kernel came from.
# shellcheck disable=SC2154 # the options are set by scripts/lab

share='' # folder that the guests and this script share: settings in, status out
declare -A guest_pid=()
servers=() # roles that run the server's command
carriers=() # processes that carry guests' output

cleanup() {
	trap '' INT TERM HUP
	local role pid
	for pid in "${guest_pid[@]}"; do kill -KILL "$pid" 2>/dev/null; done
	for role in "${!guest_pid[@]}"; do
		wait "${guest_pid[$role]}" 2>/dev/null
		release_carriers "$role"
	done
	wait "${carriers[@]}" 2>/dev/null
	[[ -z ${console_reader-} ]] || kill "$console_reader" 2>/dev/null
	[[ -z ${terminal-} ]] || stty "$terminal" </dev/tty 2>/dev/null
	[[ -z $share ]] || rm -rf "$share"
}

# A carrier whose guest never opened its end of the pipe still waits in open(): open and close it here.
release_carriers() { # ROLE
	local pipe end
	for pipe in "$share/$1".*.pipe; do
		[[ ! -p $pipe ]] || { exec {end}<>"$pipe" && exec {end}>&-; }
	done
}

interrupted() { # SIGNAL_NUMBER
	exit $((128 + $1))
}

# A command for the guest, as a script: the words exactly as given, no second parsing.
write_command() { # ROLE WORD...
	local role=$1 peer name
	shift
	[[ $role == client ]] && peer=server || peer=client
	{
		echo 'ulimit -l unlimited'
		while IFS= read -r name; do
			case $name in
			HOME | PATH | USER | LOGNAME | LANG | LC_ALL | TERM | NO_COLOR | CARGO_HOME | RUST* | ROCEBENCH_*)
				printf 'export %s=%q\n' "$name" "${!name}"
				;;
			esac
		done < <(compgen -e)
		# shellcheck disable=SC2016
		echo 'export PATH=/run/lab/bin:$PATH:/usr/sbin:/sbin'
		printf 'export LAB_OUT=%q LAB_ROLE=%q LAB_HOSTS=%q\n' "$out" "$role" "$hosts"
		((hosts == 1)) || printf 'export LAB_PEER=%q\n' "$peer"
		((${#environment[@]} == 0)) || printf 'export %q\n' "${environment[@]}"
		# shellcheck disable=SC2016
		[[ $mode != shell ]] || printf 'stty %s\n' "$(stty size </dev/tty | awk '{ print "rows", $1, "cols", $2 }')"
		printf 'cd %q || exit 125\nexec' "$PWD"
		printf ' %q' "$@"
		echo
	} >"$share/$role.sh"
}

# lab-peer CMD [ARG...]: runs CMD in the guest that LAB_PEER names. The request is a file in the shared folder.
write_lab_peer() {
	mkdir "$share/bin" "${servers[@]/#/$share/to-}" "$share/to-client"
	cat >"$share/bin/lab-peer" <<'END'
#!/bin/bash
# lab-peer CMD [ARG...]: runs CMD in the lab's guest LAB_PEER; prints its output and exits with its status.
base=/run/lab/to-$LAB_PEER/$BASHPID.$EPOCHREALTIME
{
	export -p
	printf 'export LAB_ROLE=%q LAB_PEER=%q\ncd %q\nexec' "$LAB_PEER" "$LAB_ROLE" "$PWD"
	printf ' %q' "$@"
} >"$base.new" && mv "$base.new" "$base.cmd" || exit 125
until [[ -e $base.status ]]; do sleep 0.05; done
cat "$base.out"
exit "$(<"$base.status")"
END
	chmod +x "$share/bin/lab-peer"
}

# Doubles commas, as QEMU's option syntax needs.
q() { echo "${1//,/,,}"; }

start_guest() { # ROLE
	local role=$1 port
	: >"$share/$role.console"
	# QEMU's emulation moves one byte a step in the copies that kernel and C library choose for CPUs with ERMS or FSRM;
	# without them, and without AVX, 64 KiB messages are twice as fast.
	local cpu=max,la57=off,erms=off,fsrm=off,avx=off,avx2=off
	local -a qemu=(qemu-system-x86_64 -M "pc,usb=off,vmport=off" -accel "tcg,thread=multi" -cpu "$cpu"
		-nodefaults -no-user-config -no-reboot -no-hpet -display none -m "$memory" -smp "$cpus"
		-kernel "$cache/kernel" -initrd "$cache/initramfs"
		# norandmaps: QEMU translates a program again for each place in memory where it starts. no_timer_check: on a busy
		# machine the kernel takes a timer that comes late for one that is broken, and panics.
		-append "console=ttyS0 quiet panic=-1 mitigations=off norandmaps no_timer_check tsc=reliable lab_role=$role"
		-fsdev "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"
		-device "virtio-9p-pci,fsdev=root,mount_tag=root"
		-fsdev "local,id=run,path=$(q "$share"),security_model=none"
		-device "virtio-9p-pci,fsdev=run,mount_tag=run"
		-fsdev "local,id=out,path=$(q "$out"),security_model=none,multidevs=remap"
		-device "virtio-9p-pci,fsdev=out,mount_tag=out"
		-device virtio-serial-pci -chardev "file,id=console,path=$(q "$share/$role.console")" -serial chardev:console)
	case $mode in
	shell) qemu+=(-chardev "stdio,id=terminal,signal=off" -device "virtconsole,chardev=terminal") ;;
	run)
		for port in stdout stderr; do
			mkfifo "$share/$role.$port.pipe"
			[[ $role.$port != server*.stderr ]] || continue
			qemu+=(-chardev "file,id=$port,path=$(q "$share/$role.$port.pipe")"
				-device "virtserialport,chardev=$port,name=lab.$port")
		done
		start_carriers "$role"
		;;
	esac
	((hosts == 1)) || add_wire "$role"
	# While it boots, the kernel measures its clocks, wrongly where other work takes the CPU meanwhile.
	((EUID != 0)) || qemu=(nice -n -10 "${qemu[@]}")
	# The guest must not outlive this script, even when it is killed.
	if [[ $mode == shell ]]; then
		setpriv --pdeathsig KILL "${qemu[@]}" <&0 2>"$share/$role.qemu" &
	else
		setpriv --pdeathsig KILL "${qemu[@]}" </dev/null >"$share/$role.qemu" 2>&1 &
	fi
	guest_pid[$role]=$!
}

# The wire: the server has a socket for each other guest; with several a hub in its QEMU joins them, so that what two
# other guests send each other does not pass the server's guest.
add_wire() { # ROLE: adds to qemu
	local role=$1 netdev=wire-$1 mac=02:00:0a:4d:00:03 other
	case $role in
	server)
		mac=02:00:0a:4d:00:01 netdev=wire-client
		for other in client "${servers[@]:1}"; do
			qemu+=(-netdev "stream,id=wire-$other,server=on,addr.type=unix,addr.path=$(q "$share/wire-$other")")
			((hosts == 2)) || qemu+=(-netdev "hubport,id=hub-$other,hubid=0,netdev=wire-$other")
		done
		((hosts == 2)) || { qemu+=(-netdev "hubport,id=hub,hubid=0") && netdev=hub; }
		;;
	client) mac=02:00:0a:4d:00:02 ;;&
	*) qemu+=(-netdev "stream,id=wire-$role,server=off,addr.type=unix,addr.path=$(q "$share/wire-$role")") ;;
	esac
	qemu+=(-device "virtio-net-pci,netdev=$netdev,mac=$mac,host_mtu=$mtu,romfile=")
}

start_carriers() { # ROLE
	local pipe=$share/$1
	if [[ $1 == server* ]]; then
		{
			tee "$out/$1.log" <"$pipe.stdout.pipe" | sed -u "s/^/[$1] /" >&2
			echo end >&"$events"
		} &
		carriers+=("$!")
		return
	fi
	{
		cat <"$pipe.stdout.pipe"
		echo end >&"$events"
	} &
	carriers+=("$!")
	cat <"$pipe.stderr.pipe" >&2 &
	carriers+=("$!")
}

alive() { [[ -n ${guest_pid[$1]-} ]] && kill -0 "${guest_pid[$1]}" 2>/dev/null; }

parent_of_self() {
	local stat parent
	stat=$(<"/proc/$$/stat")
	read -r _ parent _ <<<"${stat##*) }"
	echo "$parent"
}

any_alive() {
	local role
	for role in "${!guest_pid[@]}"; do
		! alive "$role" || return 0
	done
	return 1
}

# Returns when all guests have ended, or when they have no reason to go on.
watch_guests() {
	local role up event tasks deadline=$((SECONDS + ${timeout:-1000000000})) grace='' reported=' '
	while any_alive; do
		read -r -t 0.2 -u "$events" event
		: "${event:=}"
		for role in "${!guest_pid[@]}"; do
			[[ $reported != *" $role "* && -s $share/$role.up ]] || continue
			up=$(stat -c %.2Y "$share/$role.up")
			note "$role's guest is up after $(awk -v from="$started" -v to="$up" 'BEGIN { printf "%.1f", to - from }') s"
			[[ ! -e $share/$role.clock-rate ]] ||
				note "$role's clock ran at $(<"$share/$role.clock-rate") of this machine's, which was busy; it has a slower clock source now"
			reported+="$role "
			tasks=("/proc/${guest_pid[$role]}/task"/*)
			((EUID != 0)) || renice -n 0 -p "${tasks[@]##*/}" >/dev/null 2>&1
		done
		if ((SECONDS >= deadline)); then
			echo "lab: time-out after $timeout s" >&2
			keep_consoles
			exit 124
		fi
		[[ $(parent_of_self) == "$PPID" ]] || fail "the process that started the lab is gone"
		# The other guest waits for one that has died before its command ended.
		for role in "${!guest_pid[@]}"; do
			alive "$role" || [[ -s $share/$role.status ]] || return
		done
		if ! alive client; then
			grace=${grace:-$((SECONDS + 10))}
			((SECONDS < grace)) || return
		fi
	done
}

keep_consoles() {
	local role
	for role in "${!guest_pid[@]}"; do
		cp "$share/$role.console" "$out/console-$role.log" 2>/dev/null
	done
}

# Says why a guest ended without a status.
explain_failure() {
	local role
	for role in "${!guest_pid[@]}"; do
		[[ ! -s $share/$role.error ]] || echo "lab: $role's guest: $(cat "$share/$role.error")" >&2
		[[ ! -s $share/$role.qemu ]] || sed 's/^/lab: /' "$share/$role.qemu" >&2
		[[ -s $share/$role.status ]] || tail -n 5 "$share/$role.console" 2>/dev/null | sed "s/^/lab: $role's console: /" >&2
	done
	keep_consoles
	fail "a guest ended before its command; consoles are in $out/console-*.log"
}

wires_are_up() {
	local other
	for other in client "${servers[@]:1}"; do [[ -S $share/wire-$other ]] || return 1; done
}

run_guests() {
	local role
	started=$EPOCHREALTIME
	share=$(mktemp -d "${TMPDIR:-/tmp}/rocebench-lab.XXXXXX") || fail "cannot create a temporary folder"
	trap cleanup EXIT
	trap 'interrupted 1' HUP
	trap 'interrupted 2' INT
	trap 'interrupted 15' TERM
	mkfifo "$share/events" || fail "cannot create a pipe in $share"
	exec {events}<>"$share/events"
	ulimit -n "$(ulimit -H -n)"
	printf 'lab_mtu=%q lab_loss=%q lab_out=%q lab_mode=%q lab_shell=%q\n' "$mtu" "$loss" "$out" \
		"$( ((hosts > 1)) && echo several || echo one)" "$([[ $mode == shell ]] && echo yes)" >"$share/settings"
	write_command client "${client_command[@]}"
	if ((hosts > 1)); then
		servers=(server)
		((hosts == 2)) || servers+=(server2)
		printf 'lab_servers=%q\n' "${servers[*]}" >>"$share/settings"
		write_lab_peer
		for role in "${servers[@]}"; do
			write_command "$role" "${server_command[@]}"
			start_guest "$role"
			[[ $role == server ]] || continue
			until wires_are_up; do
				alive server || explain_failure
				read -r -t 0.05 -u "$events" _
			done
		done
	fi
	[[ $mode != shell ]] || terminal=$(stty -g </dev/tty)
	start_guest client
	if ((verbose)); then
		tail -q -n +1 -f "$share"/*.console --pid "$$" >&2 2>/dev/null &
		console_reader=$!
	fi
	watch_guests
	[[ -s $share/client.status ]] || explain_failure
	exit "$(cat "$share/client.status")"
}
