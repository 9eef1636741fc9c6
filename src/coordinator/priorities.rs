//! What becomes of a sweep's packets at the nodes' ports: the priority that they have, and whether PFC keeps it from losses.

use std::collections::BTreeSet;

use machine::device::Lossless;

use plan::Case;

/// A line for each kind of packets of the cases, where a port has PFC; nodes that would say the same say it together.
pub(super) fn notes(cases: &[Case], nodes: &[(&str, &Lossless)]) -> Vec<String> {
    let kinds: BTreeSet<(u8, u8)> = cases
        .iter()
        .flat_map(|case| &case.flows)
        .map(|flow| (flow.traffic_class, flow.service_level))
        .collect();
    let with_pfc = nodes.iter().filter(|(_, lossless)| {
        let pfc = lossless.pfc_priorities.as_ref();
        pfc.is_some_and(|pfc| !pfc.is_empty())
    });
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, lossless) in with_pfc {
        for &(traffic_class, service_level) in &kinds {
            let treatment = lossless.treatment(traffic_class, service_level);
            let text = match treatment.is_lossless {
                Some(true) => treatment.to_string(),
                Some(false) | None => format!("{treatment}; {}", lossless.advice()),
            };
            match lines.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) => names.push(name),
                None => lines.push((text, vec![name])),
            }
        }
    }
    lines
        .into_iter()
        .map(|(text, names)| {
            if names.len() == nodes.len() { text } else { format!("{}: {text}", names.join(", ")) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use settings::Settings;

    use super::*;

    fn case(pairs: &[(&str, &str)]) -> Case {
        Case::new(String::new(), pairs.iter().copied().collect::<Settings>())
    }

    fn lossless() -> Lossless {
        Lossless {
            pfc_priorities: Some(vec![3]),
            trust: Some("dscp".into()),
            dscp_priorities: Some(vec![(0, 0), (26, 3)]),
            ..Lossless::default()
        }
    }

    #[test]
    fn a_run_says_which_priority_it_has_and_whether_it_is_lossless() {
        let (here, bare) = (lossless(), Lossless::default());
        let usual = case(&[]);
        let lossy = "packets of DSCP 0 have priority 0, without PFC: they can be lost; give --dscp 26, whose packets have PFC here";
        let both = [("client", &here), ("server", &here)];
        assert_eq!(notes(std::slice::from_ref(&usual), &both), [lossy]);
        let one = [("client", &bare), ("server", &here)];
        let expected = format!("server: {lossy}");
        assert_eq!(notes(std::slice::from_ref(&usual), &one), [expected]);
        let marked = case(&[("dscp", "26")]);
        let fine = "packets of DSCP 26 have priority 3, with PFC";
        assert_eq!(notes(&[usual, marked], &both), [lossy, fine]);
    }

    #[test]
    fn without_pfc_there_is_nothing_to_say() {
        let bare = Lossless::default();
        let nodes = [("client", &bare), ("server", &bare)];
        assert!(notes(&[case(&[])], &nodes).is_empty());
    }
}
