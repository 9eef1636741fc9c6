# shellcheck shell=bash
# Packages of the distribution: which are missing, and their installation. Sourced by scripts/setup.
# The caller defines: dry_run, note, fail.
# shellcheck disable=SC2154

# libclang has rules of its own: libclang.sh.
# shellcheck disable=SC2034
build_packages=(gcc libc6-dev pkg-config libibverbs-dev librdmacm-dev)
# shellcheck disable=SC2034
test_packages=(binutils dpkg-dev elfutils rpm shellcheck ibverbs-utils rdmacm-utils perftest ucx-utils libfabric-bin fio iproute2 util-linux python3-mpi4py libopenmpi-dev mpich libmpich-dev python3-pyverbs python3-yaml chromium-headless-shell fonts-dejavu-core librsvg2-bin)

is_debian() { command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; }

# One of another architecture is named with it, as libc6-dev:arm64.
installed() { # PACKAGE... -> those that are
	dpkg-query -W -f '${db:Status-Status} ${Package} ${Architecture}\n' "$@" 2>/dev/null |
		awk -v native="$(dpkg --print-architecture)" \
			'$1 == "installed" { print $2 ($3 == native || $3 == "all" ? "" : ":" $3) }'
}

need_packages() { # PACKAGE...
	local missing
	is_debian || { other_system && return; }
	mapfile -t missing < <(comm -23 <(printf '%s\n' "$@" | sort -u) <(installed "$@" | sort -u))
	((${#missing[@]} == 0)) || apt_install "${missing[@]}"
}

as_root() {
	if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

apt_install() { # PACKAGE...
	local install=(env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends install "$@") log
	((dry_run)) && fail "would install the packages: $*"
	if ((EUID != 0)) && ! sudo -n true 2>/dev/null; then
		fail "these packages are missing; install them and run this again:
  sudo apt-get update && sudo apt-get install --no-install-recommends $*"
	fi
	note "installing the packages: $*"
	# The lists may be absent, or too old to name files that still exist.
	as_root "${install[@]}" >/dev/null 2>&1 </dev/null && return
	log=$(as_root apt-get -qq update 2>&1 </dev/null && as_root "${install[@]}" 2>&1 </dev/null) && return
	fail "apt-get could not install $*:
$log"
}

# Elsewhere nothing is installed: what a build needs is tested, and named if it is not there.
other_system() {
	local missing=()
	command -v cc >/dev/null || missing+=('a C compiler (cc)')
	command -v pkg-config >/dev/null || missing+=(pkg-config)
	pkg-config --exists libibverbs 2>/dev/null || missing+=(libibverbs)
	pkg-config --exists librdmacm 2>/dev/null || missing+=(librdmacm)
	((${#missing[@]} == 0)) && return
	fail "missing: $(printf '%s, ' "${missing[@]}" | sed 's/, $//'). Only Debian and Ubuntu are set up automatically; elsewhere:
  Fedora, RHEL:  dnf install gcc pkgconf-pkg-config rdma-core-devel clang-libs python3-pip
  Arch:          pacman -S gcc pkgconf rdma-core clang python-pip
  openSUSE:      zypper install gcc pkg-config rdma-core-devel python3-pip"
}
