#!/bin/bash
# PrologSlurmctld of Slurm: does each rail of each of the job's nodes reach those of the others? If not, nodes that none of the
# others reaches are drained, and Slurm queues the job again. `rocebench serve` runs on all nodes; in slurm.conf:
#   PrologSlurmctld=/etc/slurm/slurm-prolog.sh
# Slurm sets no search path. /etc/default/rocebench-prolog may set ROCEBENCH_RAILS=mlx5_[0-7], the devices of each node.
PATH=${ROCEBENCH_PATH:-/usr/local/bin:/usr/bin:/bin}
settings=/etc/default/rocebench-prolog
# shellcheck source=/dev/null
[ ! -r $settings ] || . $settings
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT || exit 1
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
# A node alone has nobody to reach.
((${#nodes[@]} > 1)) || exit 0
printf "%s${ROCEBENCH_RAILS:+/$ROCEBENCH_RAILS}\n" "${nodes[@]}" >"$folder/nodes"
problems=$(rocebench mesh --check --nodes "@$folder/nodes" --quiet --only-problems --junit "$folder/check.xml" --out "$folder" 2>&1) && exit 0
echo "job $SLURM_JOB_ID: $problems" | logger -t rocebench
for node in "${nodes[@]}"; do
	reason=$(grep -m 1 -E "^$node(/[^ ]+)? (reaches none|is slow to all) of its " <<<"$problems") || continue
	scontrol update "NodeName=$node" State=DRAIN "Reason=rocebench: ${reason:0:200}"
done
exit 1
