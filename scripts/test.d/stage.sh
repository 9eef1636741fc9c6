# shellcheck shell=bash
# Stages: each is a process group of its own; what it leaves running is found, ended and counted as its failure. Sourced by
# scripts/test and scripts/flakes.
# FAILED_TESTS: a file that a stage's commands add a line to for each test that failed

child='' beside='' failed=() summary=() failed_tests=()
clock() { printf '%02d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

group_alive() { kill -0 -- "-$1" 2>/dev/null; }
end_group() { # PID
	local looks=0
	kill -TERM -- "-$1" 2>/dev/null
	while group_alive "$1" && ((looks++ < 80)); do sleep 0.1; done
	kill -KILL -- "-$1" 2>/dev/null
}

# shellcheck disable=SC2317
stop() {
	trap '' INT TERM HUP
	echo "${0##*/}: stopped by a signal" >&2
	[[ -z $child ]] || end_group "$child"
	[[ -z $beside ]] || end_group "$beside"
	exit 130
}
trap stop INT TERM HUP

stage() { # NAME CMD [ARG...]
	local name=$1 began=$SECONDS status looks=0
	shift
	echo "==== [$(clock)] $name: $*"
	FAILED_TESTS=$(mktemp) || exit 1
	export FAILED_TESTS
	set -m
	"$@" </dev/null &
	child=$!
	set +m
	wait "$child"
	status=$?
	# What has been told to end may need a moment.
	while group_alive "$child" && ((looks++ < 20)); do sleep 0.1; done
	if group_alive "$child"; then
		echo "${0##*/}: $name left processes behind: $(pgrep -g "$child" -l | paste -sd ' ')" >&2
		end_group "$child"
		status=1
	fi
	child=''
	mapfile -t failed_tests < <(sort -u "$FAILED_TESTS")
	rm -f "$FAILED_TESTS"
	if ((status == 0)); then
		summary+=("ok      $((SECONDS - began)) s  $name")
	else
		summary+=("FAILED  $((SECONDS - began)) s  $name (status $status)" "${failed_tests[@]/#/        }")
		failed+=("$name")
	fi
	return "$status"
}

# Stages at low priority beside others, for commands that leave a part of the CPUs unused.
# shellcheck disable=SC2030
begin_beside() { # FUNCTION: it has the stages
	beside_files=$(mktemp -d) || exit 1
	set -m
	(
		trap stop INT TERM HUP
		renice -n 19 -p "$BASHPID" >/dev/null
		beside='' child='' failed=() summary=()
		"$1"
		printf '%s\n' "${summary[@]}" >"$beside_files/summary"
		((${#failed[@]} == 0)) || printf '%s\n' "${failed[@]}" >"$beside_files/failed"
	) >"$beside_files/output" 2>&1 &
	beside=$!
	set +m
}
# shellcheck disable=SC2031
end_beside() {
	wait "$beside" || failed+=("beside")
	beside=''
	cat "$beside_files/output"
	mapfile -t -O "${#summary[@]}" summary <"$beside_files/summary"
	[[ ! -e $beside_files/failed ]] || mapfile -t -O "${#failed[@]}" failed <"$beside_files/failed"
	rm -rf "$beside_files"
}

finish() {
	echo "==== [$(clock)] summary"
	printf '%s\n' "${summary[@]}"
	((${#failed[@]} == 0)) || { echo "FAILED: $(printf '%s, ' "${failed[@]}" | sed 's/, $//')" && exit 1; }
	echo "all ${#summary[@]} stages passed in $(clock)"
	exit 0
}
