# shellcheck shell=bash
# What builds for ARM64 on a machine of another kind: Rust's standard library for it, and the headers of Debian's arm64
# packages beside the machine's own. To link, Debian's cross compiler; to run, qemu-user. Sourced by scripts/setup,
# scripts/check-aarch64 and scripts/package.
# The caller defines: dry_run, note, fail, and what packages.sh does.
# shellcheck disable=SC2154

aarch64_target=aarch64-unknown-linux-gnu
aarch64_packages=(libc6-dev:arm64 libibverbs-dev:arm64 librdmacm-dev:arm64)
aarch64_run_packages=(gcc-aarch64-linux-gnu qemu-user-static)
aarch64_pkg_config=/usr/lib/aarch64-linux-gnu/pkgconfig
# What cargo needs in its environment.
# shellcheck disable=SC2034
aarch64_environment=(PKG_CONFIG_ALLOW_CROSS=1 "PKG_CONFIG_LIBDIR=$aarch64_pkg_config"
	CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64-static)

# Ubuntu keeps arm64 on other mirrors: there apt-get could not update after the architecture was added.
why_not_aarch64() {
	[[ $(uname -m) == x86_64 ]] || { echo "this machine is not x86-64" && return; }
	# shellcheck source=/dev/null
	[[ $(. /etc/os-release 2>/dev/null && echo "$ID") == debian ]] && is_debian || echo "this system is not Debian"
}

has_aarch64_target() { [[ -n $(find "$(rustc --print target-libdir --target "$aarch64_target")" -name 'libstd-*.rlib' 2>/dev/null) ]]; }

has_aarch64_headers() { has_aarch64_target && [[ -e $aarch64_pkg_config/libibverbs.pc && -e $aarch64_pkg_config/librdmacm.pc ]]; }
has_aarch64_run() { has_aarch64_headers && command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64-static >/dev/null; }

need_aarch64() { # check | run
	local why packages=("${aarch64_packages[@]}")
	[[ $1 == check ]] || packages+=("${aarch64_run_packages[@]}")
	why=$(why_not_aarch64)
	[[ -z $why ]] || { note "nothing to install for the check of ARM64: $why" && return; }
	if ! has_aarch64_target; then
		command -v rustup >/dev/null || fail "no Rust standard library for $aarch64_target, and no rustup to add it: https://rustup.rs"
		((dry_run)) && fail "would add the Rust target $aarch64_target"
		note "adding the Rust target $aarch64_target"
		rustup target add "$aarch64_target" >&2 ||
			fail "rustup could not add the target $aarch64_target (its message is above), so nothing can be checked for ARM64"
	fi
	if ! dpkg --print-foreign-architectures | grep -qx arm64; then
		((dry_run)) && fail "would add dpkg's architecture arm64"
		as_root dpkg --add-architecture arm64 || fail "cannot add an architecture; run this and then this script again: sudo dpkg --add-architecture arm64"
	fi
	need_packages "${packages[@]}"
}
