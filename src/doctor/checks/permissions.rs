//! Checks that the devices' nodes in `/dev/infiniband` exist and that this user may use them.

use settings::listed;

use super::subject::Subject;
use protocol::finding::{Finding, State};

const FOLDER: &str = "dev/infiniband";

const WHY: &str =
    "a verbs program opens /dev/infiniband/uverbsN of its device for reading and writing";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    let nodes: Vec<(&str, &str)> = subject
        .inventory
        .system()
        .filter_map(|device| Some((device.name.as_str(), device.uverbs.as_deref()?)))
        .collect();
    if nodes.is_empty() {
        return Vec::new();
    }
    let states: Vec<Node<'_>> = nodes
        .iter()
        .map(|(device, node)| Node {
            device,
            node,
            is_there: machine.has(format!("{FOLDER}/{node}")),
            may_use: machine.may_use(format!("{FOLDER}/{node}")),
        })
        .collect();
    let mut findings = vec![judge(&states)];
    if !machine.has(format!("{FOLDER}/rdma_cm")) {
        findings.push(
            Finding::new(
                "device nodes",
                State::Warning,
                "there is no /dev/infiniband/rdma_cm",
                "many RDMA programs connect with rdma_cm, which needs it; rocebench does so only with --connect cm",
            )
            .of("rdma_cm")
            .remedy(
                "sudo modprobe rdma_ucm; in a container, start it with --device=/dev/infiniband",
            ),
        );
    }
    findings
}

struct Node<'a> {
    device: &'a str,
    node: &'a str,
    is_there: bool,
    may_use: bool,
}

fn judge(nodes: &[Node<'_>]) -> Finding {
    let missing = names_of(nodes, |node| !node.is_there);
    let denied = names_of(nodes, |node| node.is_there && !node.may_use);
    if !missing.is_empty() {
        return finding(State::Broken, format!("/dev/infiniband lacks {}", listed(&missing)))
            .remedy(
                "sudo modprobe ib_uverbs; in a container, start it with --device=/dev/infiniband",
            );
    }
    if !denied.is_empty() {
        return finding(
            State::Broken,
            format!("this user has no permission to read and write {}", listed(&denied)),
        )
        .remedy(
            "sudo chmod a+rw /dev/infiniband/uverbs*; to stay: KERNEL==\"uverbs*\", MODE=\"0666\" in \
             /etc/udev/rules.d/90-rdma.rules",
        );
    }
    finding(
        State::Ok,
        format!("this user may read and write {}", listed(&names_of(nodes, |_| true))),
    )
}

fn finding(state: State, found: String) -> Finding {
    Finding::new("device nodes", state, found, WHY)
}

fn names_of(nodes: &[Node<'_>], filter: fn(&Node<'_>) -> bool) -> Vec<String> {
    nodes
        .iter()
        .filter(|node| filter(node))
        .map(|node| format!("{} ({})", node.node, node.device))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    #[test]
    fn nodes_that_are_missing_or_forbidden() {
        let node =
            |is_there, may_use| Node { device: "mlx5_0", node: "uverbs0", is_there, may_use };
        assert_eq!(judge(&[node(true, true)]).state, State::Ok);
        let denied = judge(&[node(true, true), node(true, false)]);
        assert_eq!(denied.state, State::Broken);
        assert!(denied.remedy.unwrap().contains("chmod"));
        let missing = judge(&[node(false, false)]);
        assert_eq!(missing.found, "/dev/infiniband lacks uverbs0 (mlx5_0)");
    }

    #[test]
    fn every_device_has_a_node() {
        let tree = tree();
        tree.add("dev/infiniband", &[("uverbs0", ""), ("rdma_cm", "")]);
        let found = findings(&tree, check);
        assert_eq!(states(&found), [(State::Broken, "device nodes".into())]);
        assert!(found[0].found.ends_with("uverbs1 (rxe0)"), "{found:?}");
        tree.add("dev/infiniband", &[("uverbs1", "")]);
        let all = (State::Ok, "device nodes".into());
        assert_eq!(states(&findings(&tree, check)), [all]);
    }
}
