#!/bin/sh
# fi_pingpong between two addresses of a network interface, in a network namespace of its own: libfabric passes over `lo`.
set -eu
port=30001 hexadecimal_port=7531
ip link set lo up
ip link add v0 type veth peer name v1
for address in 198.51.100.1 198.51.100.2; do ip address add $address/24 dev v0; done
ip link set v0 up
ip link set v1 up
run='fi_pingpong -p verbs -e msg -I 100 -c'
SOFTROCE_ADDRESS=198.51.100.1 $run -B $port &
# 0A is the state of a socket that listens.
until grep -q ":$hexadecimal_port .* 0A " /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done
SOFTROCE_ADDRESS=198.51.100.2 $run -P $port 198.51.100.1
wait $!
