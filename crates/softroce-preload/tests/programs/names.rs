//! The names of libibverbs and librdmacm: each function that takes one of their objects has to be the preload library's,
//! or a program built for a newer rdma-core gives the real one an object that is not its own.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_int, c_void};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::ptr::without_provenance_mut;

use testing::embedded_device::library;

use crate::child::run_alone;

type Names = BTreeSet<String>;

/// What rdma-core exports; the file says of which version.
const LISTED: &str = include_str!("../../rdma-core-names.txt");

/// Names that stay the real library's, since they take no object: copies between structs, and what concerns the process,
/// its drivers and files as a whole.
const LEFT: &[&str] = &[
    "ibv_copy_ah_attr_from_kern",
    "ibv_copy_path_rec_from_kern",
    "ibv_copy_path_rec_to_kern",
    "ibv_copy_qp_attr_from_kern",
    "ibv_dofork_range",
    "ibv_dontfork_range",
    "ibv_get_sysfs_path",
    "ibv_read_sysfs_file",
    "ibv_register_driver",
];

/// rsockets: the others take a number that only `rsocket` gives, which is refused.
fn is_of_rsockets(name: &str) -> bool {
    name.starts_with('r') && !name.starts_with("rdma_") && name != "rsocket"
}

fn listed() -> Names {
    LISTED.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// What a library exports, but for names that only rdma-core's own libraries use.
fn exported(library: &Path) -> Names {
    let table = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    assert!(table.status.success(), "{}", String::from_utf8_lossy(&table.stderr));
    let lines = String::from_utf8(table.stdout).unwrap();
    lines
        .lines()
        .filter(|line| !line.contains("_PRIVATE_") && !line.contains(" A "))
        .filter_map(|line| line.split(' ').nth(2))
        .filter_map(|name| name.split('@').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_name_that_takes_an_object_is_ours() {
    let (listed, ours) = (listed(), exported(library()));
    let stays = |name: &&String| LEFT.contains(&name.as_str()) || is_of_rsockets(name);
    let missing: Vec<_> = listed.difference(&ours).filter(|name| !stays(name)).collect();
    assert_eq!(missing, [""; 0], "not exported: the real library would get our objects");
    let twice: Vec<_> = ours.iter().filter(stays).collect();
    assert_eq!(twice, [""; 0], "exported, and said to stay the real library's");
    let unknown: Vec<_> = ours
        .difference(&listed)
        .filter(|name| ["ibv_", "rdma_"].iter().any(|start| name.starts_with(start)))
        .collect();
    assert_eq!(unknown, ["ibv_query_gid_type"], "of no version of rdma-core; this one is private");
}

/// When this fails a newer rdma-core is installed: make the list anew from its map files.
#[test]
fn the_list_has_every_name_of_the_installed_libraries() {
    let listed = listed();
    for name in ["libibverbs.so.1", "librdmacm.so.1"] {
        let file = file_of(name);
        let unlisted: Vec<_> = exported(Path::new(&file)).difference(&listed).cloned().collect();
        assert_eq!(unlisted, [""; 0], "{file}");
    }
}

/// Names of later rdma-cores than Debian's, whose programs cannot be run here: what they return.
#[test]
fn names_that_no_program_here_calls_are_refused() {
    let ours = open(library().to_str().unwrap());
    let refused = |name: &str| {
        // SAFETY: the C library's place of this thread's error number.
        unsafe { *libc::__errno_location() = 0 };
        let argument: *mut c_void = without_provenance_mut(64);
        let text = CString::new(name).unwrap();
        // SAFETY: an open library and a string.
        let function = unsafe { libc::dlsym(ours, text.as_ptr()) };
        assert!(!function.is_null(), "{name}");
        // SAFETY: a function that looks at none of its arguments; a number that is returned is the lower half of this one.
        let returned = unsafe {
            let call: extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> usize =
                std::mem::transmute(function);
            call(argument, argument, argument, argument)
        };
        // SAFETY: as above.
        let errno = unsafe { *libc::__errno_location() };
        assert_eq!(errno, libc::EOPNOTSUPP, "{name}");
        returned
    };
    // A pointer is null.
    assert_eq!(
        [
            "ibv_reg_mr_ex",
            "ibv_alloc_dmah",
            "ibv_alloc_buf",
            "ibv_reg_buf_mr",
            "ibv_create_comp_cntr"
        ]
        .map(refused),
        [0; 5]
    );
    let number = |name: &str| refused(name) as c_int;
    let minus_one = [
        "ibv_dm_export_dmabuf_fd",
        "ibv_export_buf_dmabuf_fd",
        "rdma_query_addrinfo",
        "rdma_resolve_addrinfo",
        "rdma_write_cm_event",
    ];
    assert_eq!(minus_one.map(number), [-1; 5]);
    let errors = [
        "ibv_dealloc_dmah",
        "_ibv_query_comp_cntr_caps",
        "ibv_destroy_comp_cntr",
        "ibv_inc_comp_cntr",
        "ibv_inc_err_comp_cntr",
        "ibv_qp_attach_comp_cntr",
        "ibv_read_comp_cntr",
        "ibv_read_err_comp_cntr",
        "ibv_set_comp_cntr",
        "ibv_set_err_comp_cntr",
    ];
    assert_eq!(errors.map(number), [libc::EOPNOTSUPP; 10]);
    refused("ibv_free_buf");
}

/// Set for the program that opens the libraries: this one again, under the preloaded library.
const OPENS: &str = "OPENS_LIBRARIES";

/// As NCCL, gloo and sideway do: with a version, and without one.
#[test]
fn who_opens_the_libraries_gets_the_device() {
    if std::env::var_os(OPENS).is_none() {
        let own = std::env::current_exe().unwrap();
        let program = format!("{OPENS}=1 {}", own.display());
        let test = "names::who_opens_the_libraries_gets_the_device --exact --nocapture";
        run_alone(&program, test).exits(0);
        return;
    }
    for library in ["libibverbs.so.1", "librdmacm.so.1", "/usr/lib/libibverbs.so"] {
        let handle = open(library);
        for (name, version) in [
            ("ibv_get_device_list", Some("IBVERBS_1.1")),
            ("ibv_reg_mr_iova2", Some("IBVERBS_1.8")),
            ("rdma_create_id", Some("RDMACM_1.0")),
            ("ibv_get_device_list", None),
        ] {
            let found = file_with(handle, name, version);
            assert_eq!(found.as_deref(), library_of_tests(), "{library} {name}");
        }
        // What stays the real library's works too.
        for name in ["ibv_fork_init", "ibv_wc_status_str", "rdma_event_str"] {
            assert!(file_with(handle, name, None).is_some(), "{name}");
        }
    }
    // Others are as they were.
    let c_library = open("libc.so.6");
    let found = file_with(c_library, "getenv", Some("GLIBC_2.2.5")).or_else(|| {
        // Of aarch64.
        file_with(c_library, "getenv", Some("GLIBC_2.17"))
    });
    assert!(found.is_some_and(|file| file.ends_with("libc.so.6")));
}

fn library_of_tests() -> Option<&'static str> {
    library().to_str()
}

/// The file in which a name is found.
fn file_with(handle: *mut c_void, name: &str, version: Option<&str>) -> Option<String> {
    let text = |text: &str| CString::new(text).unwrap();
    let (name, version) = (text(name), version.map(text));
    // SAFETY: an open library and strings, and a struct of pointers, for which null is a value.
    unsafe {
        let place = match &version {
            Some(version) => libc::dlvsym(handle, name.as_ptr(), version.as_ptr()),
            None => libc::dlsym(handle, name.as_ptr()),
        };
        let mut found: libc::Dl_info = std::mem::zeroed();
        let is_found = !place.is_null() && libc::dladdr(place, &raw mut found) != 0;
        is_found.then(|| CStr::from_ptr(found.dli_fname).to_str().unwrap().to_owned())
    }
}

fn open(library: &str) -> *mut c_void {
    let name = CString::new(library).unwrap();
    // SAFETY: a string; libraries without constructors that do harm, kept to themselves (RTLD_LOCAL).
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null(), "{library}");
    handle
}

/// The file that a library is loaded from.
fn file_of(library: &str) -> String {
    open(library);
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    files.find(|file| file.contains(library)).unwrap().to_owned()
}
