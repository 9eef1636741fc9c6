# shellcheck shell=bash
# What the lab needs on this machine: Debian packages, and in the cache folder a stock kernel and an
# initramfs with the modules of Soft-RoCE. Sourced by scripts/lab; knows nothing of runs and guests.
# The caller defines: cache (folder), lab_d (folder of this file), note, fail.
# shellcheck disable=SC2154

lab_packages=(qemu-system-x86 busybox-static cpio kmod xz-utils iproute2 rdma-core ibverbs-providers
	ibverbs-utils rdmacm-utils perftest)
# The programs those packages bring, as a cheap test for what is missing.
lab_programs=(qemu-system-x86_64 busybox cpio depmod modprobe xz rdma ip tc ibv_devinfo rping ib_send_bw setpriv)
# What the guest inserts. crc32_generic is not a dependency that modprobe knows, but without it
# `rdma link add` says "failed to add".
lab_modules=(virtio_pci virtio_console 9pnet_virtio 9p overlay crc32_generic crc32c_generic virtio_net veth
	sch_netem sch_prio cls_u32 rdma_rxe ib_uverbs rdma_ucm)

have() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null; }

missing_programs() {
	local program
	for program in "${lab_programs[@]}"; do have "$program" || echo "$program"; done
	# A dynamically linked busybox does not run in an initramfs without libraries.
	[[ ! -x /bin/busybox ]] || [[ $(dpkg-query -W -f '${Status}' busybox-static 2>/dev/null) == *installed ]] ||
		echo 'a static busybox'
}

install_packages() {
	local missing
	missing=$(missing_programs | paste -sd ' ')
	[[ -n $missing ]] || return 0
	if ((EUID != 0)); then
		fail "missing: $missing. Install the packages first:
  sudo apt-get update && sudo apt-get install --no-install-recommends ${lab_packages[*]}"
	fi
	have apt-get || fail "missing: $missing, and there is no apt-get here. The lab is made for Debian; install the equivalents of: ${lab_packages[*]}"
	note "installing packages (missing: $missing)"
	apt_get install || { apt_get update && apt_get install; } || fail "apt-get could not install ${lab_packages[*]}; its messages are above"
	missing=$(missing_programs | paste -sd ' ')
	[[ -z $missing ]] || fail "still missing after the installation: $missing"
}

apt_get() {
	case $1 in
	install) DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends -y "${lab_packages[@]}" ;;
	update) apt-get -qq update ;;
	esac >&2
}

# The package with the kernel itself: what the metapackage depends on today.
kernel_package() {
	apt-cache depends linux-image-amd64 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }'
}

download_kernel() { # DIR
	local package
	package=$(kernel_package)
	[[ -n $package ]] || return 1
	note "downloading $package"
	# _apt, the user that fetches for root, must be able to write here.
	((EUID != 0)) || chown _apt "$1" 2>/dev/null || true
	(cd "$1" && apt-get -qq download "$package") >&2
}

# The ELF kernel inside a bzImage, which QEMU boots by the PVH entry: the emulated CPU takes 2 s and more to unpack it.
unpack_kernel() { # BZIMAGE
	local offset
	offset=$(LC_ALL=C grep -aobP '\xfd7zXZ\x00' "$1" | head -n 1 | cut -d : -f 1)
	[[ -n $offset ]] || return 1
	# What follows the compressed kernel makes xz complain when all is unpacked.
	tail -c "+$((offset + 1))" "$1" | xz -dc 2>/dev/null >"$1.elf"
	[[ $(head -c 4 "$1.elf") == $'\x7fELF' ]] && cat "$1.elf"
}

# Leaves $cache/kernel and $cache/modules/NNN-NAME.ko, in the order in which they are inserted.
fetch_kernel() {
	local work release module file n=0
	rm -rf "$cache"/kernel.??????
	work=$(mktemp -d "$cache/kernel.XXXXXX")
	chmod 755 "$work"
	if ! download_kernel "$work"; then
		((EUID == 0)) || fail "cannot download the package linux-image-amd64 depends on. Try: sudo apt-get update"
		apt_get update
		download_kernel "$work" || fail "cannot download the kernel that linux-image-amd64 depends on (apt-get's messages are above; is a Debian mirror in /etc/apt?)"
	fi
	dpkg -x "$work"/linux-image-*.deb "$work/root" || fail "cannot unpack the kernel package (is the disk full?)"
	release=$(basename "$work"/root/boot/vmlinuz-*)
	release=${release#vmlinuz-}
	PATH=$PATH:/usr/sbin:/sbin depmod -b "$work/root" "$release" || fail "depmod failed for $release"
	mkdir "$work/modules"
	while read -r file; do
		module=$(basename "${file%%.ko*}")
		[[ ! -e $(echo "$work"/modules/*-"$module".ko) ]] || continue
		printf -v module '%s/modules/%03d-%s.ko' "$work" "$((n += 1))" "$module"
		case $file in
		*.xz) xz -dc "$file" >"$module" ;;
		*) cp "$file" "$module" ;;
		esac
	done < <(PATH=$PATH:/usr/sbin:/sbin modprobe -d "$work/root" -S "$release" --show-depends -a "${lab_modules[@]}" | awk '$1 == "insmod" { print $2 }')
	((n > 0)) || fail "modprobe found none of the modules in $release: ${lab_modules[*]}"
	rm -rf "$cache/modules"
	mv "$work/modules" "$cache/modules"
	unpack_kernel "$work/root/boot/vmlinuz-$release" >"$work/kernel" || cp "$work/root/boot/vmlinuz-$release" "$work/kernel"
	mv "$work/kernel" "$cache/kernel"
	echo "$release" >"$cache/release"
	rm -rf "$work"
}

build_initramfs() {
	local tree
	rm -rf "$cache"/initramfs.??????
	tree=$(mktemp -d "$cache/initramfs.XXXXXX")
	mkdir -p "$tree"/{bin,dev,proc,sys,lab,lower,scratch,host}
	cp /bin/busybox "$tree/bin/busybox"
	ln -s busybox "$tree/bin/sh"
	cp -r "$cache/modules" "$tree/modules"
	install -m 755 "$lab_d/init.sh" "$tree/init"
	# Uncompressed: unpacking costs more of the emulated CPU than reading does.
	(cd "$tree" && find . | cpio --quiet -R 0:0 -H newc -o) >"$cache/initramfs.new" || fail "cpio failed"
	mv "$cache/initramfs.new" "$cache/initramfs"
	rm -rf "$tree"
}

# Brings the cache up to date; quick when it is.
prepare() { # [refresh]
	local kernel_stamp init_stamp
	install_packages
	mkdir -p "$cache" 2>/dev/null
	[[ -w $cache ]] || fail "cannot write $cache; does it belong to another user? Then remove it"
	kernel_stamp="${lab_modules[*]}"
	init_stamp=$(sha256sum <"$lab_d/init.sh")
	# Two labs started together in a fresh clone set up once.
	exec {lock}>"$cache/lock"
	flock "$lock"
	if [[ ${1-} == refresh || ! -s $cache/kernel || $(cat "$cache/modules.stamp" 2>/dev/null) != "$kernel_stamp" ]]; then
		rm -f "$cache"/*.stamp
		fetch_kernel
		echo "$kernel_stamp" >"$cache/modules.stamp"
	fi
	if [[ ! -s $cache/initramfs || $(cat "$cache/initramfs.stamp" 2>/dev/null) != "$init_stamp" ]]; then
		build_initramfs
		echo "$init_stamp" >"$cache/initramfs.stamp"
	fi
	exec {lock}>&-
}
