//! Checks how much memory this process may lock.

use super::super::machine::Machine;
use super::subject::Subject;
use protocol::examination::LockedMemory;
use protocol::finding::{Finding, State};

/// Enough for a few dozen QPs with messages of 1 MiB.
const ENOUGH_BYTES: u64 = 64 << 20;

/// The capability to lock memory beyond any limit.
const CAP_IPC_LOCK: u32 = 14;

const WHY: &str = "an RDMA device reads and writes buffers and queues by itself, so they are locked in memory; \
     beyond the limit ibv_reg_mr, ibv_create_cq and ibv_create_qp fail with ENOMEM";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let finding = match limit(subject.machine) {
        Some(Limit::None) => ok("no limit"),
        Some(Limit::Privileged) => ok("no limit for this process (CAP_IPC_LOCK)"),
        Some(Limit::Bytes(bytes)) if !subject.has_system_devices() => ok(&format!(
            "at most {}; the embedded device locks none",
            size(bytes)
        )),
        Some(Limit::Bytes(bytes)) if bytes >= ENOUGH_BYTES => ok(&format!("at most {}", size(bytes))),
        Some(Limit::Bytes(bytes)) => Finding::new(
            "locked memory",
            State::Warning,
            format!("at most {}", size(bytes)),
            WHY,
        )
        .remedy(
            "ulimit -l unlimited; to stay: `* - memlock unlimited` in /etc/security/limits.conf, or \
             LimitMEMLOCK=infinity in a systemd unit",
        ),
        None => Finding::new(
            "locked memory",
            State::Unknown,
            "/proc/self/limits does not have it",
            WHY,
        ),
    };
    vec![finding]
}

fn ok(found: &str) -> Finding {
    Finding::new("locked memory", State::Ok, found, WHY)
}

#[derive(Debug, PartialEq)]
enum Limit {
    None,
    /// The process has the capability, so no limit applies.
    Privileged,
    Bytes(u64),
}

/// How much memory this process may lock.
pub(in super::super) fn locked_memory(machine: &Machine) -> Option<LockedMemory> {
    Some(match limit(machine)? {
        Limit::None | Limit::Privileged => LockedMemory::Unlimited,
        Limit::Bytes(bytes) => LockedMemory::Bytes(bytes),
    })
}

fn limit(machine: &Machine) -> Option<Limit> {
    let limits = machine.text("proc/self/limits")?;
    let soft = soft_limit(&limits)?;
    let capable = machine.has_capability(CAP_IPC_LOCK);
    Some(match soft {
        Limit::Bytes(_) if capable => Limit::Privileged,
        other => other,
    })
}

fn soft_limit(limits: &str) -> Option<Limit> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(Limit::None),
        bytes => bytes.parse().ok().map(Limit::Bytes),
    }
}

/// `64 KiB`, `8 MiB`.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
         Max processes             95000                95000                processes \n\
         Max locked memory         65536                65536                bytes     \n";

    #[test]
    fn a_small_limit_is_a_warning_unless_it_does_not_bind() {
        let tree = tree();
        let with = |capabilities: &str| {
            let files = [("limits", LIMITS), ("status", capabilities)];
            tree.add("proc/self", &files);
            findings(&tree, check).remove(0)
        };
        let found = with("CapEff:\t0000000000000000\n");
        assert_eq!(outcome(&found), (State::Warning, "at most 64 KiB"));
        let found = with("Name:\tx\nCapEff:\t000001ffffffffff\n");
        assert_eq!(found.state, State::Ok);
    }

    #[test]
    fn the_embedded_device_does_not_care() {
        let tree = Tree::new(&[("proc/self/limits", LIMITS)]);
        assert_eq!(findings(&tree, check)[0].state, State::Ok);
        assert_eq!(findings(&Tree::new(&[]), check)[0].state, State::Unknown);
    }

    #[test]
    fn limits_as_the_kernel_writes_them() {
        let unlimited = LIMITS.replace("65536 ", "unlimited ");
        assert_eq!(soft_limit(&unlimited), Some(Limit::None));
        assert_eq!(soft_limit(LIMITS), Some(Limit::Bytes(65536)));
        assert_eq!(soft_limit("Max cpu time unlimited"), None);
        assert_eq!(size(8 << 20), "8 MiB");
        assert_eq!(size(2 << 30), "2 GiB");
    }
}
