# shellcheck shell=bash
# A libclang for rdma-sys. Its bindgen panics with libclang 16 and newer, and of those installed it takes the
# newest. So: where only usable ones are installed, nothing is to do; where newer ones are too, .cargo/config.toml
# points at a usable one; where there is none, one is installed, from the distribution or else, unpacked
# below .lab/, from PyPI. Sourced by scripts/setup.
# The caller defines: root, dry_run, note, fail, and what packages.sh does.
# shellcheck disable=SC2154

newest_usable=15
cargo_config=$root/.cargo/config.toml
cargo_config_mark='# Written by scripts/setup, and removed by it when no longer needed.'
wheel_dir=$root/.lab/libclang-14.0.6

# Every libclang where rdma-sys' bindgen looks: `MAJOR DIRECTORY`, oldest first.
libclangs() {
	local file
	find /usr/lib* /usr/local/lib* /usr/local/llvm*/lib* -maxdepth 3 \
		\( -name 'libclang.so*' -o -name 'libclang-[0-9]*.so*' \) ! -type d 2>/dev/null |
		while read -r file; do
			[[ -e $file ]] && echo "$(libclang_major "$file") $(dirname "$file")"
		done | sort -un
}

# A name tells the major version on Debian (libclang-14.so.1) and on Fedora (libclang.so.16.0.6); else the library does.
libclang_major() { # FILE
	local name
	name=$(basename "$(realpath "$1")")
	if [[ $name =~ ^libclang-([0-9]+) || $name =~ ^libclang\.so\.([0-9]{2,}) ]]; then
		echo "${BASH_REMATCH[1]}"
	else
		LC_ALL=C grep -aoE -m 1 'clang version [0-9]+' "$1" | grep -oE -m 1 '[0-9]+' || echo 999
	fi
}

# The directory of the newest usable libclang that has its own headers (stddef.h …) beside it.
usable_libclang() {
	libclangs | sort -rn | while read -r major directory; do
		((major <= newest_usable)) || continue
		compgen -G "$directory/clang/*/include/stddef.h" >/dev/null && echo "$directory" && break
	done
}

need_libclang() {
	local newest usable
	[[ -z ${LIBCLANG_PATH-} ]] || { note "LIBCLANG_PATH is set to $LIBCLANG_PATH: left as it is" && return; }
	usable=$(usable_libclang)
	if [[ -z $usable ]]; then
		install_libclang
		usable=$(usable_libclang)
	fi
	newest=$(libclangs | tail -n 1 | cut -d ' ' -f 1)
	if [[ -z $usable ]]; then
		need_wheel
		write_cargo_config "LIBCLANG_PATH = { value = \"${wheel_dir#"$root"/}/clang/native\", relative = true }" \
			"BINDGEN_EXTRA_CLANG_ARGS = \"-isystem $(gcc -print-file-name=include)\""
	elif ((newest > newest_usable)); then
		write_cargo_config "LIBCLANG_PATH = \"$usable\""
	else
		write_cargo_config
	fi
}

# The distribution's, if it still has one.
install_libclang() {
	local major
	is_debian || return 0
	for major in 14 15 13 12 11; do
		apt-cache show "libclang-$major-dev" >/dev/null 2>&1 && { need_packages "libclang-$major-dev" && return; }
	done
	# No usable one known; before that counts, the lists must be there at all.
	if ! apt-cache show libclang-dev >/dev/null 2>&1 && ((!dry_run)); then
		{ ((EUID == 0)) || sudo -n true 2>/dev/null; } || return 0
		as_root apt-get -qq update >/dev/null </dev/null || return 0
		for major in 14 15 13 12 11; do
			apt-cache show "libclang-$major-dev" >/dev/null 2>&1 && { need_packages "libclang-$major-dev" && return; }
		done
	fi
}

# libclang 14.0.6 as PyPI has it: one library, no program, nothing outside this folder.
need_wheel() {
	local requirements
	compgen -G "$wheel_dir/clang/native/libclang.so" >/dev/null && return
	((dry_run)) && fail "would unpack libclang 14.0.6 from PyPI below .lab/"
	python3 -m pip --version >/dev/null 2>&1 || { is_debian && need_packages python3 python3-pip; }
	note "no libclang of version $newest_usable or older here: unpacking 14.0.6 from PyPI below .lab/"
	rm -rf "$wheel_dir"
	mkdir -p "$wheel_dir" || fail "cannot create $wheel_dir"
	requirements=$wheel_dir/requirements.txt
	cat >"$requirements" <<'TEXT'
libclang==14.0.6 \
 --hash=sha256:206d2789e4450a37d054e63b70451a6fc1873466397443fa13de2b3d4adb2796 \
 --hash=sha256:e2add1703129b2abe066fb1890afa880870a89fd6ab4ec5d2a7a8dc8d271677e
TEXT
	python3 -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
		--target "$wheel_dir" -r "$requirements" >&2 </dev/null ||
		{ rm -rf "$wheel_dir" && fail "cannot install libclang 14.0.6 with pip (it needs python3 with pip, x86-64 or arm64).
  Or install libclang 14 or 15 yourself and set LIBCLANG_PATH to the folder with its libclang.so"; }
}

# Cargo reads it in this folder only. Without lines, a file of ours is removed; a file of someone else's is never touched.
write_cargo_config() { # [LINE...]
	local content
	if [[ -e $cargo_config ]] && ! grep -qxF "$cargo_config_mark" "$cargo_config"; then
		(($# == 0)) || grep -q LIBCLANG_PATH "$cargo_config" ||
			fail "$cargo_config is yours, so it is not changed; add to it below [env]:
$(printf '  %s\n' "$@")"
		return 0
	fi
	if (($# == 0)); then
		((dry_run)) || rm -f "$cargo_config"
		return 0
	fi
	content=$(printf '%s\n' "$cargo_config_mark" '[env]' "$@")
	[[ $(cat "$cargo_config" 2>/dev/null) != "$content" ]] || return 0
	((dry_run)) && fail "would write $cargo_config"
	note "writing .cargo/config.toml: libclang $newest_usable or older is used for the build"
	mkdir -p "$root/.cargo" && echo "$content" >"$cargo_config"
}
