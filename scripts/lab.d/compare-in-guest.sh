#!/usr/bin/env bash
# The guest's part of scripts/compare-perftest: writes a line "op qps size tool gbit_per_s mmsg_per_s" a
# sample to OUT/samples.
# usage: compare-in-guest.sh OUT ROCEBENCH PAIRS SECONDS OPS QPS SIZES
set -euo pipefail
out=$1 rocebench=$2 pairs=$3 seconds=$4
IFS=, read -ra ops <<<"$5"
IFS=, read -ra qps <<<"$6"
IFS=, read -ra sizes <<<"$7"
device=rxe0 gid=1 address=192.0.2.1 port=19000
# An emulated CPU can be later with an ACK than the default of 67 ms, and a needless retransmission stalls either
# program for as long: both wait 1 s.
timeout=18

# A window long enough for what is in flight to cross several times: perftest counts nothing otherwise.
window() { # QPS SIZE
  local times=$(($1 * $2 * 6 / 1048576))
  echo $((seconds * (times > 1 ? times : 1)))
}

perftest() { # OP QPS SIZE Q: both ends on the device; -D measures the middle half
  local options=(-d "$device" -x "$gid" -q "$2" -s "$3" -t 128 -Q "$4" -u "$timeout" -p $((port += 1))
    -D $(($(window "$2" "$3") * 2)) --report_gbits -F)
  [ "$1" = send ] && options+=(-r 512)
  "ib_$1_bw" "${options[@]}" >"$out/perftest-server.txt" 2>&1 &
  local server=$! tries=0
  # The server must be there first; a client without one fails at once.
  until "ib_$1_bw" "${options[@]}" "$address" >"$out/perftest-client.txt" 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -ge 20 ] || ! kill -0 "$server" 2>/dev/null; then
      cat "$out/perftest-client.txt" "$out/perftest-server.txt" >&2
      exit 1
    fi
    sleep 0.2
  done
  wait "$server" || true
  # The row after the head: bytes, iterations, peak, average Gb/s, Mpps.
  awk '$1 == "#bytes" { getline; print $4, $5 }' "$out/perftest-client.txt"
}

own() { # OP QPS SIZE Q
  "$rocebench" -d "$device" -x "$gid" --op "$1" -q "$2" -s "$3" -t 128 -r 512 -Q "$4" --cq shared --timeout "$timeout" \
    -D "$(window "$2" "$3")s" --warmup "$(($(window "$2" "$3") * 500))ms" --quiet -o "$out/own" --csv - \
    2>"$out/own-errors.txt" >"$out/own.csv" || { cat "$out/own-errors.txt" >&2; exit 1; }
  awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
    $column["qp"] == "all" { print $column["gbit_per_s"], $column["mmsg_per_s"] }' "$out/own.csv"
}

sample() { # TOOL OP QPS SIZE Q
  local figures
  if [ "$1" = perftest ]; then figures=$(perftest "${@:2}"); else figures=$(own "${@:2}"); fi
  [ -n "$figures" ] || { echo "compare-in-guest: no figure from $1 for $*" >&2; exit 1; }
  echo "$2 $3 $4 $1 $figures" | tee -a "$out/samples" >&2
}

for op in "${ops[@]}"; do
  for size in "${sizes[@]}"; do
    moderation=1
    [ "$size" -le 8192 ] && moderation=100
    for n in "${qps[@]}"; do
      for ((pair = 0; pair < pairs; pair++)); do
        order=(perftest rocebench)
        [ $((pair % 2)) -eq 1 ] && order=(rocebench perftest)
        for tool in "${order[@]}"; do sample "$tool" "$op" "$n" "$size" "$moderation"; done
      done
    done
  done
done
