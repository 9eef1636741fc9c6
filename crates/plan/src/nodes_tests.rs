use proptest::prelude::*;
use results::sample::has;

use super::*;

#[test]
fn nodes_have_names_in_their_order() {
    let whole = ["a", "b08:18516", "b09:18516", "b10:18516"];
    for (text, names) in [
        ("local:3", &["node0", "node1", "node2"][..]),
        ("a,b:18516,[::1]:7", &["a", "b:18516", "[::1]:7"]),
        ("local,b", &["local", "b"]),
        ("a,b[08-10]:18516/mlx5_1", &whole),
    ] {
        let nodes: Nodes = text.parse().unwrap();
        assert_eq!(nodes.names(), *names);
        assert_eq!(nodes.count(), names.len());
        for (number, name) in (0..).zip(names) {
            assert_eq!(nodes.number(name), Ok(number));
        }
    }
    let nodes = Nodes::default();
    assert_eq!(nodes.number("sever"), Err(Some("server".to_owned())));
    assert_eq!(nodes.number("q"), Err(None));
}

#[test]
fn a_node_has_the_devices_that_are_listed_with_it() {
    let nodes: Nodes = "n[1-2]:7/mlx5_[0-1],c/all,d/rxe0,e".parse().unwrap();
    assert_eq!(nodes.names(), ["n1:7", "n2:7", "c", "d", "e"]);
    let both = Devices::Named(["mlx5_0", "mlx5_1"].map(str::to_owned).to_vec());
    for (number, devices) in [(0, Some(&both)), (1, Some(&both)), (2, Some(&Devices::All))] {
        assert_eq!((nodes.devices(number), nodes.device(number)), (devices, None));
    }
    assert_eq!(nodes.device(3).unwrap().name, "rxe0");
    assert_eq!(nodes.devices(4), None);
}

#[test]
fn what_names_no_nodes_says_why() {
    for (text, words) in [
        ("a", "2 to 4096 nodes, not 1"),
        ("a,b/", "`b/`: a device"),
        ("a,b[1-2", "does not close"),
        ("a[1-3],a2", "a2 is listed twice"),
        ("a/mlx5_0,a/mlx5_0", "a is listed twice"),
        ("a/mlx5_0,a/all", "a is listed twice"),
        ("a/mlx5_0,a/mlx5_1", "2 to 4096 nodes, not 1"),
        ("a,http://b", "is not a host"),
        ("a,b,a", "a is listed twice"),
        ("a,,b", "nothing where a host belongs"),
        ("", "nothing where a host belongs"),
        ("a,local:2,b c", "`b c` is not a host"),
        ("local:1", "2 to 256 nodes, not 1"),
        ("local:257", "not 257"),
        ("local:", "local:4"),
        ("local:+4", "local:4"),
        ("local:x", "`local:x`"),
        ("local:99999999999", "not 99999999999"),
    ] {
        has(text.parse::<Nodes>().unwrap_err().to_string(), [words]);
    }
    let most = format!("n[1-{MOST_NODES}]");
    assert!(most.parse::<Nodes>().is_ok());
    assert!(format!("{most},m").parse::<Nodes>().is_err());
}

#[test]
fn hosts_with_and_without_ports() {
    for (text, host, port) in [
        ("node1", "node1", None),
        ("node1:99", "node1", Some(99)),
        ("node_1.example.org.", "node_1.example.org.", None),
        ("192.0.2.7", "192.0.2.7", None),
        ("192.0.2.7:18515", "192.0.2.7", Some(18_515)),
        ("::1", "::1", None),
        ("2001:db8::7", "2001:db8::7", None),
        ("[2001:db8::7]", "2001:db8::7", None),
        ("[2001:db8::7]:65535", "2001:db8::7", Some(65_535)),
        ("fe80::1%eth0", "fe80::1%eth0", None),
        ("[fe80::1%eth0]:1", "fe80::1%eth0", Some(1)),
    ] {
        let parsed: HostPort = text.parse().unwrap();
        assert_eq!((&*parsed.host, parsed.port), (host, port), "{text}");
        assert_eq!(parsed.to_string().parse(), Ok(parsed), "{text}");
    }
}

#[test]
fn what_is_no_host() {
    for text in [
        " ", "a b", "-x", "http://a", "a/b", "[::1", "[::1]x", "[node]", "1:2:3", ":1", "fe80::1%",
        "é",
    ] {
        let parsed = text.parse::<HostPort>();
        assert!(matches!(parsed, Err(HostError::Host(_))), "{text}");
    }
    for text in ["a:", "a:0", "a:65536", "a:+1", "a:x", "[::1]:"] {
        let parsed = text.parse::<HostPort>();
        assert!(matches!(parsed, Err(HostError::Port(_))), "{text}");
    }
}

#[test]
fn brackets_are_expanded_as_slurm_does() {
    let whole = ["a", "b01:18600/mlx5_1", "b02:18600/mlx5_1"];
    for (text, items) in [
        ("a", &["a"][..]),
        ("a,b", &["a", "b"]),
        ("node[1-3]", &["node1", "node2", "node3"]),
        ("n[08-10,3]", &["n08", "n09", "n10", "n3"]),
        ("r[1-2]n[1-2]", &["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("a,b[01-02]:18600/mlx5_1", &whole),
        ("[::1]:7,x", &["[::1]:7", "x"]),
        ("", &[""]),
        ("a,,b", &["a", "", "b"]),
    ] {
        assert_eq!(expand(text).unwrap(), items, "{text}");
    }
}

#[test]
fn what_is_no_list_says_why() {
    for (text, words) in [
        ("a,b[01-16", "`b[01-16` has a bracket that does not close"),
        ("a[[1]", "does not close"),
        ("a]", "was not opened"),
        ("n[]", "neither a number nor a range"),
        ("n[1-]", "`1-` is neither a number"),
        ("n[a]", "`a` is neither a number"),
        ("n[3-1]", "runs backwards"),
        ("n[1-5000]", "more than 4096"),
        ("n[1-99]m[1-99]", "more than 4096"),
        ("@/nowhere/at/all", "cannot read the list of nodes /nowhere"),
    ] {
        has(expand(text).unwrap_err().to_string(), [words]);
    }
}

#[test]
fn a_file_has_nodes_by_lines_and_commas() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nodes");
    std::fs::write(&path, "# all\na,b[1-2]\n c  # the last\n\n").unwrap();
    let list = format!("@{}", path.display());
    assert_eq!(expand(&list).unwrap(), ["a", "b1", "b2", "c"]);
    std::fs::write(&path, "# none\n").unwrap();
    assert!(matches!(expand(&list), Err(ListError::Empty(_))));
    // As an editor of another system saves it.
    std::fs::write(&path, "\u{feff}a\r\nb\r\n").unwrap();
    assert_eq!(expand(&list).unwrap(), ["a", "b"]);
    // Cut off, it would be another list.
    std::fs::write(&path, "node1\n".repeat(200_000)).unwrap();
    assert!(matches!(expand(&list), Err(ListError::Read { .. })));
}

proptest! {
    #[test]
    fn a_range_has_as_many_items_as_it_says(from in 0u32..1000, length in 1u32..100) {
        let items = expand(&format!("n[{from}-{}]", from + length - 1)).unwrap();
        prop_assert_eq!(items.len(), length as usize);
        prop_assert_eq!(&items[0], &format!("n{from}"));
    }

    #[test]
    fn no_text_panics(text in "[a-c\\[\\]0-9,:@-]{0,24}") {
        let _ = expand(&text);
    }
}
