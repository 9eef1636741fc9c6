//! Threads have their own CPU time and cores, and no two workers one core where there are enough.

use proptest::prelude::*;

use super::*;
use crate::host::tests::machine;

#[test]
fn the_remedy_is_found_through_other_errors() {
    let thread_error = || {
        let (name, source) = ("worker-0".to_owned(), io::Error::from_raw_os_error(11));
        io::Error::from(ThreadError { name, source })
    };
    assert_eq!(
        thread_error().to_string(),
        "cannot start the thread worker-0: Resource temporarily unavailable (os error 11)"
    );
    for error in [thread_error(), io::Error::other(thread_error())] {
        assert_eq!(remedy(&error), Some(REMEDY));
    }
    assert_eq!(remedy(&io::Error::from_raw_os_error(11)), None);
}

#[test]
fn cpu_time_is_that_of_the_calling_thread() {
    let before = thread_seconds();
    let other_seconds = std::thread::spawn(|| {
        let start = thread_seconds();
        while thread_seconds() - start < 0.03 {}
        thread_seconds() - start
    })
    .join()
    .unwrap();
    let own_seconds = thread_seconds() - before;
    assert!(own_seconds < other_seconds, "{own_seconds} {other_seconds}");
}

#[test]
fn the_machines_time_is_that_in_which_its_cpus_worked() {
    let stat = "cpu  1000 20 300 70000 5 40 200 99 50 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
    let times = MachineTimes::parse(stat).unwrap();
    let expected =
        MachineTimes { busy_seconds: 15.6, soft_interrupt_seconds: 2.0, stolen_seconds: 0.99 };
    assert_eq!(times, expected);
    for unknown in ["", "cpu  1 2 3\n", "cpu  1 2 x 4 5 6 7\n", "cpu0 1 2 3 4 5 6 7\n"] {
        assert_eq!(MachineTimes::parse(unknown), None, "{unknown}");
    }
    let before = machine_seconds();
    assert!(machine_seconds() >= before && before.is_some());
}

#[test]
fn a_thread_is_pinned_where_it_was_asked() {
    let core = *allowed_cores().unwrap().last().unwrap();
    let seen = std::thread::spawn(move || {
        pin_current_thread(core).unwrap();
        rustix::thread::sched_getcpu()
    });
    assert_eq!(seen.join().unwrap(), core);
}

#[test]
fn a_core_that_is_not_there_is_an_error_that_names_those_that_are() {
    let allowed = CoreList(allowed_cores().unwrap()).to_string();
    for core in [MAX_CORES - 1, MAX_CORES, usize::MAX] {
        let error = pin_current_thread(core).unwrap_err().to_string();
        assert!(error.contains(&format!("core {core}")), "{error}");
        assert!(error.contains(&allowed), "{error}");
    }
}

#[test]
fn nodes_are_read_from_sysfs() {
    let root = machine(&[
        ("sys/devices/system/node/node0/cpulist", "0-1,4\n"),
        ("sys/devices/system/node/node1/cpulist", "\n"),
        ("sys/devices/system/node/node2/cpulist", "x\n"),
    ]);
    let cores = |node| cores_of_node(root.path(), node);
    assert_eq!(cores(0).unwrap(), [0, 1, 4]);
    assert_eq!(cores(1).unwrap(), [0usize; 0]);
    for (node, says) in [(2, "`x` is not a core"), (3, "node3/cpulist")] {
        let error = cores(node).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn cores_and_ranges() {
    assert_eq!("2,4-7".parse(), Ok(CoreList(vec![2, 4, 5, 6, 7])));
    assert_eq!("3-3".parse(), Ok(CoreList(vec![3])));
    assert_eq!("7-4".parse::<CoreList>(), Err(CoreListError::Backwards(7, 4)));
    assert_eq!("1-4,2".parse::<CoreList>(), Err(CoreListError::Duplicate(2)));
    assert_eq!("0-9999999".parse::<CoreList>(), Err(CoreListError::TooHigh(9_999_999)));
    for text in ["", "a", "1-", "-1", "1-2-3", "1,"] {
        assert!(matches!(text.parse::<CoreList>(), Err(CoreListError::Syntax(_))), "{text}");
    }
}

proptest! {
    #[test]
    fn a_printed_core_list_is_read_back(cores in proptest::collection::hash_set(0usize..64, 1..40), sorted: bool) {
        let mut cores: Vec<usize> = cores.into_iter().collect();
        if sorted {
            cores.sort_unstable();
        }
        let list = CoreList(cores);
        prop_assert_eq!(list.to_string().parse::<CoreList>(), Ok(list));
    }

    #[test]
    fn no_text_upsets_the_core_parser(text in "[0-9,-]{0,24}") {
        let _ = text.parse::<CoreList>();
    }
}

fn locks() -> (tempfile::TempDir, CoreLocks) {
    let folder = tempfile::tempdir().unwrap();
    let locks = CoreLocks::within(folder.path().to_owned());
    (folder, locks)
}

fn taken(held: Option<&HeldCore>) -> Option<(usize, u32)> {
    held.map(|held| (held.core(), held.others()))
}

#[test]
fn a_core_that_somebody_has_is_passed_over() {
    let (_folder, locks) = locks();
    assert!(locks.check().is_ok());
    let first = locks.take(&[4, 5, 6], &[]);
    let second = locks.take(&[4, 5, 6], &[]);
    assert_eq!(taken(first.as_ref()), Some((4, 0)));
    assert_eq!(taken(second.as_ref()), Some((5, 0)));
    drop(first);
    let third = locks.take(&[4, 5, 6], &[]);
    assert_eq!(taken(third.as_ref()), Some((4, 0)));
    assert_eq!(taken(locks.take(&[], &[]).as_ref()), None);
}

#[test]
fn too_few_cores_are_shared_evenly_and_both_know() {
    let (_folder, locks) = locks();
    let held: Vec<_> = (0..5).map(|_| locks.take(&[0, 1], &[]).unwrap()).collect();
    let cores: Vec<_> = held.iter().map(HeldCore::core).collect();
    assert_eq!(cores, [0, 1, 0, 1, 0]);
    let others: Vec<_> = held.iter().map(HeldCore::others).collect();
    assert_eq!(others, [2, 1, 2, 1, 2]);
    assert_eq!((locks.workers_on(0), locks.workers_on(1)), (3, 2));
}

#[test]
fn a_core_whose_first_worker_left_before_the_second_is_not_free() {
    let (_folder, locks) = locks();
    let first = locks.take(&[7], &[]);
    let second = locks.take(&[7], &[]).unwrap();
    drop(first);
    assert_eq!(second.others(), 0);
    let third = locks.take(&[7, 8], &[]);
    assert_eq!(taken(third.as_ref()), Some((8, 0)));
}

#[test]
fn what_others_leave_in_the_folder_does_no_harm() {
    let (folder, locks) = locks();
    let path = |name: &str| folder.path().join(name);
    let fifo = path("rocebench-core-0.0");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
    fs::write(path("target"), "kept").unwrap();
    std::os::unix::fs::symlink("target", path("rocebench-core-1.0")).unwrap();
    let first = locks.take(&[0, 1, 2], &[]);
    assert_eq!(taken(first.as_ref()), Some((0, 0)));
    // Through the link it would be the second.
    let second = locks.take(&[1, 2], &[]);
    assert_eq!(taken(second.as_ref()), Some((2, 0)));
    assert_eq!(fs::read_to_string(path("target")).unwrap(), "kept");
}

#[test]
fn without_a_folder_the_cores_of_one_end_are_still_apart() {
    let locks = CoreLocks::within("/proc/there/is/none".into());
    assert!(locks.check().is_err());
    let first = locks.take(&[3, 4], &[]).unwrap().core();
    let second = locks.take(&[3, 4], &[first]).unwrap().core();
    assert_eq!((first, second), (3, 4));
}
