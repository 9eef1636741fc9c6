use std::collections::HashSet;

use proptest::prelude::*;
use results::sample::{from_words, has};
use settings::Workload;

use super::*;

/// What was asked for from the lines of a configuration file, which is the shortest way to write one.
fn sweep(text: &str) -> Result<Sweep, PlanError> {
    let file = crate::ConfigFile::parse(text, std::path::Path::new("test"), &[]);
    Sweep::new(&file.unwrap().given)
}

fn ids(text: &str) -> String {
    sweep(text).unwrap().cases.into_iter().map(|case| case.id).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_empty_spec_is_one_case_of_defaults() {
    let sweep = sweep("").unwrap();
    assert_eq!(sweep.runs(), 1);
    let [case] = <&[Case; 1]>::try_from(&*sweep.cases).unwrap();
    let mut settings = Settings::default();
    settings.fit();
    let expected = Case::new("send-shared-q1-64KiB".into(), settings);
    assert_eq!(expected.signal_every, 1);
    assert_eq!(expected.stop(), Stop::DurationNs(5_000_000_000));
    assert_eq!(*case, expected);
}

#[test]
fn the_order_is_op_cq_size_qps() {
    let text = "op = ['write', 'send']\ncq = ['per-qp', 'shared']\nsize = [64, '4K']\nqps = [4, 1]";
    let ids_of = |op_and_cq: &str| {
        let rest = ["q4-64B", "q1-64B", "q4-4KiB", "q1-4KiB"];
        rest.map(|rest| format!("{op_and_cq}-{rest}")).join(" ")
    };
    let ops = ["write-per-qp", "write-shared", "send-per-qp", "send-shared"];
    assert_eq!(ids(text), ops.map(ids_of).join(" "));
}

#[test]
fn ids_carry_what_varies_or_is_unusual() {
    let (three, polls_and_connects) = (
        "workers = 2\nmtu = 1024\nbidirectional = true",
        "connect = ['tcp', 'cm']\npoll = 'event'",
    );
    for (text, expected) in [
        (three, "~-w2-m1024-b"),
        ("tx-depth = [128, 64]", "~-t128 ~-t64"),
        ("signal-every = 1", "~"),
        ("post-list = 4", "~-l4"),
        (polls_and_connects, "~-event ~-event-cm"),
    ] {
        let expected = expected.replace('~', "send-shared-q1-64KiB");
        assert_eq!(ids(text), expected, "{text}");
    }
    let small = "size = 64\nsignal-every = 4\ninline = 64";
    let ops = "rx-depth = 16\nop = ['send', 'read']";
    let polls = "qps = [1, 2]\npoll = ['busy', 'event', 'adaptive']";
    let poll_ids = "send-shared-q1-64KiB send-shared-q1-64KiB-event send-shared-q1-64KiB-adaptive \
                         send-shared-q2-64KiB send-shared-q2-64KiB-event send-shared-q2-64KiB-adaptive";
    // Either way of connecting is a case of set-up by its own name.
    let set_up = "op = 'connect'\nconnect = ['tcp', 'cm']\ntraffic-qps = [0, 1]\nsize = 64";
    let set_up_ids =
        "connect-q1-T0 connect-q1-T0-cm connect-shared-q1-64B-T1 connect-shared-q1-64B-T1-cm";
    for (text, expected) in [
        (small, "send-shared-q1-64B-Q4-I64B"),
        (ops, "send-shared-q1-64KiB-r16 read-shared-q1-64KiB"),
        (polls, poll_ids),
        (set_up, set_up_ids),
    ] {
        assert_eq!(ids(text), expected, "{text}");
    }
}

#[test]
fn what_does_not_matter_to_an_op_makes_no_case() {
    let text = "op = ['write', 'read']\nrx-depth = [1, 2]\ninline = [64, 128]";
    let expected = "write-shared-q1-64KiB-I64B write-shared-q1-64KiB-I128B read-shared-q1-64KiB";
    assert_eq!(ids(text), expected);
    let cases = sweep("op = ['write', 'read']\ninline = 64").unwrap().cases;
    assert!(cases.iter().map(|case| case.inline_bytes).eq([64, 0]));
}

#[test]
fn moderation_by_default_divides_the_depth_and_is_not_where_latency_is_recorded() {
    for (text, expected) in [
        ("size = 8192", 64),
        ("size = 8193", 1),
        ("size = 64\ntx-depth = 16", 8),
        ("size = 64\ntx-depth = 300", 60),
        ("size = 64\ntx-depth = 127", 1),
        ("size = 64\ntx-depth = 1", 1),
        ("size = 64\npost-list = 32", 64),
        ("size = 64\npost-list = 16\ntx-depth = 96", 48),
        ("size = 64\npost-list = 128", 128),
        ("size = 64\npost-list = 7\ntx-depth = 10", 7),
        ("size = '1M'\npost-list = 32", 1),
    ] {
        let signal_every = |options: &str| sweep(options).unwrap().cases[0].signal_every;
        assert_eq!(signal_every(text), 1, "{text}");
        let without_latency = format!("{text}\nno-latency = true");
        assert_eq!(signal_every(&without_latency), expected, "{text}");
    }
}

#[test]
fn what_makes_no_sense_names_the_flag_that_mends_it() {
    for (text, flag) in [
        ("qps = 0", "qps"),
        ("qps = [1, 131073]", "qps"),
        ("size = 0", "size"),
        ("workers = 0", "workers"),
        ("workers = 1025", "workers"),
        ("tx-depth = 0", "tx-depth"),
        ("rx-depth = 0", "rx-depth"),
        ("signal-every = 0", "signal-every"),
        ("post-list = 0", "post-list"),
        ("inline = '65K'", "inline"),
        ("op = 'read'\ninline = 64", "inline"),
        ("runs = 0", "runs"),
        ("iters = 0", "iters"),
        ("duration = 0", "duration"),
        ("duration = 1\niters = 1", "duration"),
        ("cq-depth = 0", "cq-depth"),
        ("cq-depth = 2147483648", "cq-depth"),
        ("timeout = 32", "timeout"),
        ("retry-cnt = 8", "retry-cnt"),
        ("rnr-retry = 8", "rnr-retry"),
        ("min-rnr-timer = 32", "min-rnr-timer"),
        ("max-rd-atomic = 0", "max-rd-atomic"),
        ("max-rd-atomic = 256", "max-rd-atomic"),
        ("service-level = 16", "service-level"),
        ("traffic-class = 256", "traffic-class"),
        ("tx-depth = 128\nsignal-every = 129", "signal-every"),
        ("tx-depth = [1, 128]\nsignal-every = 100", "signal-every"),
        ("tx-depth = 128\npost-list = 129", "post-list"),
        ("post-list = 100\nsignal-every = 64", "post-list"),
        ("qps = 65536\ntx-depth = 65536", "qps"),
    ] {
        let error = sweep(text).unwrap_err();
        assert_eq!(error.flag(), flag, "{text}: {error}");
        has(format!("{error} {}", error.hint()), [&format!("--{flag}")]);
        assert!(!error.hint().is_empty());
    }
}

#[test]
fn limits_themselves_are_accepted() {
    let text = "qps = 65536\nsize = '1G'\nworkers = 1024\ntx-depth = 65536\nrx-depth = 65536\nsignal-every = 65536
        cq = 'per-qp'\npost-list = 65536\niters = 1099511627776\nruns = 1000\ntimeout = 31\nretry-cnt = 7\ninline = '64K'
        rnr-retry = 7\nmin-rnr-timer = 31\nmax-rd-atomic = 255\nservice-level = 15\ntraffic-class = 255
        cq-depth = 2147483647";
    assert_eq!(sweep(text).map(|sweep| sweep.cases.len()), Ok(1));
}

#[test]
fn a_list_may_be_shorter_than_a_batch() {
    assert!(sweep("post-list = 3\nsignal-every = 100").is_ok());
    assert!(sweep("post-list = 64\nsignal-every = 16").is_ok());
}

#[test]
fn too_many_cases_are_counted_not_built() {
    let list = |count: u32| (1..=count).map(|it| it.to_string()).collect::<Vec<_>>();
    let mut given = Given::default();
    for (flag, count) in [
        ("qps", 4096),
        ("workers", 1024),
        ("tx-depth", 4000),
        ("rx-depth", 4000),
        ("post-list", 4000),
        ("signal-every", 4000),
    ] {
        let row = Settings::row(flag).unwrap();
        given.set_items(row, &list(count)).unwrap();
    }
    let error = PlanError::TooManyCases { cases: u64::MAX, most: 100_000, longest: "qps" };
    assert_eq!(Sweep::new(&given).unwrap_err(), error);
}

#[test]
fn the_longest_time_counts_warm_up_and_runs() {
    let timed = sweep("qps = [1, 2]\nruns = 3\nduration = 2\nwarmup = '500ms'").unwrap();
    assert_eq!(timed.longest(timed.runs()), Some(Duration::from_secs(15)));
    assert_eq!(sweep("iters = 5").unwrap().longest(1), None);
}

fn some_list(most: u32) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::hash_set(0..most, 0..4)
        .prop_map(|set| set.iter().map(u32::to_string).collect())
}

proptest! {
    #[test]
    fn every_sweep_is_sound_or_refused(
        qps in some_list(70_000), workers in some_list(1_100), tx_depth in some_list(300), rx_depth in some_list(70_000),
        signal_every in some_list(300), post_list in some_list(130), size in some_list((1 << 30) + 1),
        ops in proptest::sample::subsequence(Workload::ALL.to_vec(), 1..=4),
    ) {
        let op = ops.iter().map(Workload::to_string).collect();
        let mut given = Given::default();
        for (flag, items) in [
            ("op", op), ("qps", qps), ("workers", workers), ("tx-depth", tx_depth), ("rx-depth", rx_depth),
            ("signal-every", signal_every), ("post-list", post_list), ("size", size),
        ] {
            if !items.is_empty() {
                given.set_items(Settings::row(flag).unwrap(), &items).unwrap();
            }
        }
        match Sweep::new(&given) {
            Ok(sweep) => {
                let ids: HashSet<&str> = sweep.cases.iter().map(|case| case.id.as_str()).collect();
                prop_assert_eq!(ids.len(), sweep.cases.len());
                for case in &sweep.cases {
                    prop_assert!(case.qps >= 1 && case.size_bytes >= 1 && case.workers >= 1 && case.rx_depth >= 1);
                    prop_assert!((1..=case.tx_depth).contains(&case.signal_every), "{:?}", case);
                    prop_assert!((1..=case.tx_depth).contains(&case.post_list), "{:?}", case);
                    prop_assert!(
                        case.post_list <= case.signal_every || case.post_list % case.signal_every == 0,
                        "{:?}", case
                    );
                }
            }
            Err(error) => prop_assert!(!error.flag().is_empty() && !error.hint().is_empty()),
        }
    }
}

/// Settings that were given, each with a value or two.
fn some_given() -> impl Strategy<Value = Given> {
    let values = "true 0 1 3 7 64 2048 49152 send write read fetch-add connect uc ud shared per-qp loop 64:1,128:3 random \
                  hash round-robin 1:1,2:2 event cm extended thread device 2M 50% fixed 3s";
    let values: Vec<&str> = values.split_whitespace().collect();
    // What others depend on comes more often.
    let often = ["op", "op", "service", "rate", "rate", "spread", "memory"].repeat(6);
    let flags: Vec<&str> = settings::rules().flat_map(settings::Rule::flags).chain(often).collect();
    let one = (proptest::sample::select(flags), any::<[prop::sample::Index; 2]>());
    proptest::collection::vec(one, 0..7).prop_map(move |picked| {
        let mut given = Given::default();
        for (flag, picks) in picked {
            let row = Settings::row(flag).unwrap();
            let fit: Vec<&str> = values
                .iter()
                .filter(|text| row.read(&mut Settings::default(), text).is_ok())
                .copied()
                .collect();
            let list = picks.map(|pick| *fit.get(pick.index(fit.len().max(1))).unwrap_or(&""));
            // What takes no list has the first, and so has a list with one value twice.
            let set = given.set(row, &list.join(","));
            let _ = set.or_else(|_| given.set(row, list[0]));
        }
        given
    })
}

proptest! {
    #[test]
    fn what_a_plan_makes_is_taken_and_has_an_effect(given in some_given()) {
        match Sweep::new(&given) {
            Ok(sweep) => for case in &sweep.cases {
                prop_assert_eq!(Sweep::check(case), Ok(()));
                for settings in case.flows.iter().map(|flow| &flow.settings).chain([&case.settings]) {
                    let mut same = settings.clone();
                    same.drop_idle();
                    let of_flow = |row: &&settings::Row| row.scope == Scope::Flow;
                    let mut rows = ROWS.iter().filter(of_flow);
                    prop_assert!(rows.all(|row| row.is_equal(settings, &same)), "{:?}", case);
                }
            },
            Err(error) => prop_assert!(!error.flag().is_empty() && !error.hint().is_empty()),
        }
    }
}

#[test]
fn set_up_is_measured_beside_traffic_of_the_other_settings() {
    let text = "op = ['write', 'connect']\nqps = [1, 16]\ntraffic-qps = [0, 4]\nsize = [64, '4K']\niters = 3";
    let expected = "write-shared-q1-64B write-shared-q16-64B write-shared-q1-4KiB write-shared-q16-4KiB \
                connect-q1-T0 connect-shared-q1-64B-T4 connect-q16-T0 connect-shared-q16-64B-T4 \
                connect-shared-q1-4KiB-T4 connect-shared-q16-4KiB-T4";
    assert_eq!(ids(text), expected);
    let cases = sweep(text).unwrap().cases;
    assert!(!cases[0].is_set_up());
    assert_eq!((cases[5].is_set_up(), cases[5].traffic_qps), (true, 4));
    assert_eq!(cases[5].stop_text(), "3 rounds");
}

#[test]
fn what_does_not_apply_is_the_default() {
    let sweep = sweep("op = 'connect'\ntraffic-qps = [0, 4]\nsize = 64\nsignal-every = 8");
    let cases = sweep.unwrap().cases.into_iter();
    assert!(cases.map(|case| (case.size_bytes, case.signal_every)).eq([(65_536, 1), (64, 8)]));
}

#[test]
fn what_depends_on_a_setting_without_effect_is_the_default_too() {
    for text in [
        "op = ['connect', 'send']\nrate = '1M'\narrivals = 'fixed'\nduration = 1",
        "op = ['fetch-add', 'send']\nmemory = '1M'\ntouch-order = 'random'\nseed = 7",
    ] {
        let cases = sweep(text).unwrap().cases;
        let arrivals_and_seed = |case: &Case| (case.arrivals, case.seed);
        let usual = Settings::default();
        assert_eq!(arrivals_and_seed(&cases[0]), (usual.arrivals, usual.seed));
        assert_ne!(arrivals_and_seed(&cases[1]), arrivals_and_seed(&cases[0]));
        assert!(cases.iter().all(|case| Sweep::check(case).is_ok()));
    }
}

#[test]
fn what_set_up_cannot_have_or_does_not_need_is_refused_by_name() {
    for (text, flag) in [
        ("op = ['send', 'connect']\nverify = true", "verify"),
        ("op = 'connect'\nbidirectional = true", "bidirectional"),
        ("op = 'connect'\nrx-depth = 4", "rx-depth"),
        ("op = 'connect'\ntraffic-qps = 0\nsize = 64", "size"),
        ("op = 'connect'\ntraffic-qps = 0\nworkers = 2", "workers"),
        ("op = 'connect'\ntraffic-qps = 65537", "traffic-qps"),
        ("traffic-qps = 1", "traffic-qps"),
        ("op = 'connect'\ntx-depth = 4\npost-list = 8", "post-list"),
    ] {
        let error = sweep(text).unwrap_err();
        assert_eq!(error.flag(), flag, "{text}");
        assert!(!error.hint().is_empty());
    }
    for text in [
        "op = ['send', 'connect']\nrx-depth = 4",
        "op = 'connect'\nverify = false",
        "op = 'connect'\ntraffic-qps = [0, 1]\nsize = 64",
        "op = 'connect'\ntraffic-qps = 0\nqps = 4096\nmtu = 1024",
        "op = 'connect'\nconnect = ['tcp', 'cm']",
    ] {
        assert!(sweep(text).is_ok(), "{text}");
    }
    let mut case = sweep("op = 'connect'").unwrap().cases.remove(0);
    assert_eq!(Sweep::check(&case), Ok(()));
    case.verify = true;
    assert!(Sweep::check(&case).is_err(), "from a peer");
}

/// What one case of these flags comes to: its id, or why it is refused.
fn one(flags: &str) -> Result<String, String> {
    let sweep =
        Sweep::new(&from_words(flags)).map_err(|error| format!("{error}: {}", error.hint()))?;
    Ok(sweep.cases[0].id.clone())
}

#[test]
fn sizes_by_weight_stand_in_the_id() {
    let id = one("size-mix=64:9,64K:1").unwrap();
    assert_eq!(id, "send-shared-q1-64B:9+64KiB:1");
    let mut case = Case::new("x".into(), Settings::from([("size-mix", "64:9,64K:1")]));
    assert_eq!(Sweep::check(&case), Ok(()));
    case.flows[0].size_bytes = 64;
    // A mix that its buffers do not fit.
    assert!(Sweep::check(&case).is_err());
}

/// Each is an option that is given alone.
#[test]
fn defaults_fit_the_only_setting_that_is_given() {
    for (flag, text, wanted) in [
        ("service", "uc", (65_536, 128)),
        ("service", "ud", (1_024, 128)),
        ("signal-every", "256", (65_536, 256)),
        ("post-list", "200", (65_536, 200)),
    ] {
        let sweep = Sweep::new(&Given::from([(flag, text)]));
        let case = sweep.unwrap().cases.remove(0);
        assert_eq!((case.size_bytes, case.tx_depth), wanted, "{flag} {text}");
    }
    for (flags, id) in [
        ("service=ud mtu=256", "send-shared-q1-256B-ud-m256"),
        ("signal-every=256", "send-shared-q1-64KiB-Q256"),
    ] {
        assert_eq!(one(flags).as_deref(), Ok(id));
    }
    let both = Given::from([("service", "rc,ud")]);
    let sizes = Sweep::new(&both).unwrap().cases.into_iter();
    // Each case has what fits it.
    assert!(sizes.map(|case| case.size_bytes).eq([65_536, 1_024]));
}

#[test]
fn spreading_and_a_working_set_stand_in_the_id() {
    let weights = "spread=round-robin qps=64 qp-weights=4:90,60:10";
    let shared = "memory=2G workers=2 op=write-imm recv-queue=shared";
    let random = "memory=2G touch-order=random seed=7";
    let per_worker = "memory=2G workers=2 cq=per-worker";
    let write = "memory=2G workers=2 op=write";
    for (flags, id) in [
        (weights, "send-shared-q64-64KiB-round-robin-4:90+60:10"),
        ("spread=hash outstanding=7", "send-shared-q1-64KiB-hash-o7"),
        (random, "send-shared-q1-64KiB-W2GiB-random"),
        (per_worker, "send-per-worker-q1-64KiB-w2-W2GiB"),
        (write, "write-shared-q1-64KiB-w2-W2GiB"),
        (shared, "write-imm-shared-q1-64KiB-w2-Sshared-W2GiB"),
    ] {
        assert_eq!(one(flags).as_deref(), Ok(id));
    }
}

#[test]
fn what_does_not_fit_together_is_refused_with_both_sides() {
    let errors = [
        "size-mix=64:99,64K:1 tx-depth=9 qps=11",
        "size-mix=64:9,64K:1 size=64",
        "service=ud size=64K",
        "signal-every=256 tx-depth=128",
        "outstanding=7",
        "spread=hash workers=2",
        "spread=hash qps=2 qp-weights=1:1,1:2",
        "spread=round-robin qps=3 qp-weights=1:1,1:2",
        "spread=round-robin outstanding=257 qps=2",
        "spread=round-robin outstanding=129 qps=3 workers=2 cq=per-qp",
        "spread=round-robin outstanding=7 signal-every=8",
        "memory=2G workers=2",
        "memory=2G workers=2 cq=per-worker recv-queue=shared",
        "memory=2G op=fetch-add",
        "touch-order=random",
        "memory=2G seed=7",
    ]
    .map(|flags| format!("{flags}\n-> {}\n\n", one(flags).unwrap_err()));
    insta::assert_snapshot!(errors.concat());
}

#[test]
fn calls_that_do_not_fit_are_refused_with_both_sides() {
    let says = |text: &str| {
        let error = sweep(text).unwrap_err();
        format!("{}: {error}; {}", error.flag(), error.hint())
    };
    let pair = "timestamps = ['cpu', 'device']\npoll-api = ['extended', 'legacy']";
    let calls = ["timestamps = 'device'", pair, "domains = 'thread'\nworkers = 2"];
    insta::assert_snapshot!(calls.map(says).join("\n"));
    for fits in [
        "post = 'extended'\ninline = 64\nsize = 64\nsges = 2",
        "timestamps = 'device'\npoll-api = 'extended'",
        "domains = 'thread'\nworkers = 2\ncq = 'per-qp'",
        "domains = 'thread'\nqps = 8",
    ] {
        assert!(sweep(fits).is_ok(), "{fits}");
    }
}

#[test]
fn shares_are_of_the_same_case_as_a_closed_loop() {
    let settings = Settings::from([("rate", "25%"), ("arrivals", "fixed"), ("qps", "4")]);
    let case = Case::new("c".to_owned(), settings);
    let closed = case.closed_loop().unwrap();
    let same = Settings::from([("qps", "4"), ("signal-every", "1")]);
    let of_case = (&closed.settings, &closed.flows[0].settings);
    assert_eq!(of_case, (&same, &same));
    assert_eq!(closed.closed_loop(), None);
    let known = case.with_maxima(|_| Some(1_000.0)).unwrap();
    let rate = Rate::Messages(250);
    assert_eq!((known.rate, known.flows[0].rate), (rate, rate));
    assert_eq!(case.with_maxima(|_| None), None);
    assert_eq!(known.with_maxima(|_| None).as_ref(), Some(&known));
}

#[test]
fn beside_set_up_traffic_is_a_flow() {
    let mut settings = Settings::default();
    let case = Case::new(String::new(), settings.clone());
    assert_eq!(case.flows, [Flow::forward(settings.clone())]);
    let at = |node| case.ends_at(node).map(|end| end.2).collect::<Vec<_>>();
    assert_eq!(at(0), [Side::Initiator]);
    assert_eq!((at(1), at(2)), (vec![Side::Target], vec![]));
    (settings.op, settings.traffic_qps) = (Workload::Connect, 3);
    let set_up = Case::new(String::new(), settings.clone());
    assert_eq!((set_up.flows[0].qps, set_up.flows[0].is_set_up()), (3, false));
    settings.traffic_qps = 0;
    assert_eq!(Case::new(String::new(), settings).flows, []);
}
