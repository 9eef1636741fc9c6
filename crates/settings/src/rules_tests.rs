use proptest::prelude::*;

use super::*;

/// Settings that break one rule each.
const EXAMPLES: &str = "\
    op=connect traffic-qps=0|op=connect|traffic-qps=1|op=connect verify=true|op=connect bidirectional=true
    fan-in=2|pattern=ring fan-in=2|duration=1 iters=1|duration=0
    op=write service=ud|service=ud size=8K|service=ud size-mix=1:1,8K:1|service=ud size=64 qps=9 tx-depth=8 ud-fan-out=true|service=uc connect=cm
    service=uc|service=ud|dscp=26
    op=fetch-add|size-mix=64:1,128:1|op=write|op=read inline=8|op=read|op=fetch-add alignment=4
    op=fetch-add offset=4|mr=per-qp region=1M|memory=1M workers=2|size-mix=64:9,64K:1 tx-depth=1
    tx-depth=2 signal-every=3|tx-depth=2 post-list=3|signal-every=2 post-list=3|qps=1
    spread=round-robin qp-weights=1:1,1:2|spread=hash workers=2|spread=hash signal-every=2 outstanding=1
    spread=hash tx-depth=1 outstanding=2|no-latency=true|timestamps=device|domains=thread workers=2
    qps=65536 tx-depth=65536|rate=1M pace=device|rate=1M|rate=1M spread=hash|rate=1M iters=1
    memory-at=cuda:0 op=fetch-add|memory-at=cuda:0 inline=8|memory-at=rocm:0 ping-pong=true op=write
    rate=50% pace=device|ping-pong=true|ping-pong=true verify=true|ping-pong=true op=write|rate=1M pace=device op=read|rate=1M pace=device size=1G
    lock-step=true|lock-step=true pattern=ring iters=1|lock-step=true pattern=ring|lock-step=true pattern=ring op=write
    op=connect on=1ms off=1ms|on=1ms off=1ms iters=1|off=1ms|on=1ms|on=1us off=1ms|on=1ms off=1us|start=5s|start=2s stop=2s
    start=1s workers=2|stop=1s workers=2|on=1ms off=1ms workers=2";

fn settings(words: &str) -> Settings {
    words.split(' ').filter_map(|it| it.split_once('=')).collect()
}

#[test]
fn every_rule_can_be_broken() {
    let examples: Vec<Settings> =
        EXAMPLES.split(['|', '\n']).map(str::trim).map(settings).collect();
    for rule in rules() {
        let mut answers = examples.iter().filter_map(|it| match rule.kind {
            RuleKind::Refused => it.refused_by(rule.scope),
            RuleKind::NoEffect | RuleKind::Ignored => {
                let mut rows = rule.flags().filter_map(Settings::row);
                rows.find_map(|row| row.idle_by(it).filter(|by| std::ptr::eq(*by, rule)))
            }
        });
        assert!(answers.any(|it| std::ptr::eq(it, rule)), "{rule:?}");
    }
}

#[test]
fn rules_are_about_settings_that_exist() {
    for rule in rules() {
        for flag in rule.flags().chain(Some(rule.instead_of)).filter(|flag| !flag.is_empty()) {
            assert!(Settings::row(flag).is_some(), "{flag}");
        }
        assert!(!rule.says.is_empty());
        let is_idle = rule.kind == RuleKind::NoEffect;
        assert!(rule.flags().count() == 1 || is_idle);
        assert!(!(is_idle && rule.says.contains('{')));
    }
}

#[test]
fn a_value_without_effect_is_a_misfit_of_what_no_plan_made() {
    for (words, flag, why) in [
        ("outstanding=7", "outstanding", "with --spread own: each QP keeps its send queue full"),
        (
            "service=uc ud-fan-out=true",
            "ud-fan-out",
            "without --service ud: only its QPs can send to any QP",
        ),
    ] {
        let misfit = settings(words).misfit(Scope::Flow);
        assert_eq!(misfit, Some(Misfit::NoEffect { flag, why }));
    }
    // A size that is not the largest of the mix, and a traffic class that is not that of the DSCP.
    for (words, flag) in [("size-mix=64:9,64K:1", "size"), ("dscp=26", "traffic-class")] {
        let mut settings = settings(words);
        assert_eq!(settings.misfit(Scope::Flow), None);
        (settings.size_bytes, settings.traffic_class) = (64, 5);
        let misfit = settings.misfit(Scope::Flow).unwrap();
        assert_eq!(misfit.flag(), flag);
    }
}

proptest! {
    #[test]
    fn a_misfit_says_what_to_change(rows in proptest::collection::vec((0..ROWS.len(), 0..40usize), 0..6)) {
        let values = "true 0 1 3 7 64 2048 49152 write read fetch-add connect uc ud shared per-qp ring 64:1,128:3 huge \
                          random hash round-robin 4:1,2:3 event cm extended thread device 2M 50% fixed 3s cuda:0 peermem";
        let values: Vec<&str> = values.split_whitespace().collect();
        let mut settings = Settings::unfitted();
        for (row, first) in rows {
            let mut values = values.iter().cycle().skip(first).take(values.len());
            values.find(|value| ROWS[row].read(&mut settings, value).is_ok());
        }
        settings.fit();
        for misfit in [Scope::Case, Scope::Flow].into_iter().filter_map(|it| settings.misfit(it)) {
            let text = format!("{misfit}; {}", misfit.hint());
            prop_assert!(text.contains(&format!("--{}", misfit.flag())) && !text.contains(['{', '}']), "{text}");
            prop_assert!(!misfit.hint().is_empty());
        }
    }
}
