# shellcheck shell=bash
# What checks the build for ARM64 from a machine of another kind: Rust's standard library for it, and the headers of
# Debian's arm64 packages beside the machine's own. Nothing is linked, so no other compiler is needed. Sourced by
# scripts/setup and scripts/check-aarch64.
# The caller defines: dry_run, note, fail, and what packages.sh does.
# shellcheck disable=SC2154

aarch64_target=aarch64-unknown-linux-gnu
aarch64_packages=(libc6-dev:arm64 libibverbs-dev:arm64 librdmacm-dev:arm64)

# Ubuntu keeps arm64 on other mirrors: there apt-get could not update after the architecture was added.
why_not_aarch64() {
	[[ $(uname -m) == x86_64 ]] || { echo "this machine is not x86-64" && return; }
	# shellcheck source=/dev/null
	[[ $(. /etc/os-release 2>/dev/null && echo "$ID") == debian ]] && is_debian || echo "this system is not Debian"
}

has_aarch64_target() { [[ -n $(find "$(rustc --print target-libdir --target "$aarch64_target")" -name 'libstd-*.rlib' 2>/dev/null) ]]; }

need_aarch64() {
	local why
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
	need_packages "${aarch64_packages[@]}"
}
