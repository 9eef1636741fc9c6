//! What is wrong with the flows of a result that was read: what types cannot say.

use std::collections::HashSet;

use super::model::{CaseConfig, FlowConfig, FlowResult, ResultFile};

/// The first fault: its place, such as `cases[0].config.flows[1]`, and what it is.
pub(super) fn first(result: &ResultFile) -> Option<(String, String)> {
    for (number, case) in result.cases.iter().enumerate() {
        let place = format!("cases[{number}]");
        if let Some((index, fault)) = of_config(&case.config) {
            return Some((format!("{place}.config.flows[{index}]"), fault));
        }
        for (number, run) in case.runs.iter().enumerate() {
            if !are_parallel(&case.config.flows, &run.flows) {
                let fault = "they are not those of the case's config, in its order";
                return Some((format!("{place}.runs[{number}].flows"), fault.to_owned()));
            }
        }
    }
    None
}

fn of_config(config: &CaseConfig) -> Option<(usize, String)> {
    let mut names = HashSet::new();
    config.flows.iter().enumerate().find_map(|(index, flow)| {
        let fault = if names.insert(&flow.name) {
            flow.fault(&config.settings)?
        } else {
            format!("another flow of the case is called {:?} too", flow.name)
        };
        Some((index, fault))
    })
}

fn are_parallel(config: &[FlowConfig], run: &[FlowResult]) -> bool {
    config
        .iter()
        .map(|flow| (&flow.name, &flow.from, &flow.to))
        .eq(run.iter().map(|flow| (&flow.name, &flow.from, &flow.to)))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn flows_that_do_not_fit_are_named_with_their_place() {
        let fault = |change: fn(&mut ResultFile)| {
            let mut result = sample::mixed();
            assert_eq!(first(&result), None);
            change(&mut result);
            let (place, fault) = first(&result).unwrap();
            format!("{place}: {fault}")
        };
        fn set(result: &mut ResultFile, field: &str, text: &str) {
            let settings = &mut result.cases[0].config.flows[1].settings;
            settings.insert(field.to_owned(), text.into());
        }
        let unknown = fault(|result| set(result, "colour", "red"));
        let place = "cases[0].config.flows[1]";
        assert_eq!(unknown, format!("{place}: there is no setting `colour`"));
        let op = fault(|result| set(result, "op", "fly"));
        sample::has(op, [place, "fly"]);
        let rate = fault(|result| set(result, "rate", "110%"));
        sample::has(rate, ["`110%` is more than the closed loop's maximum"]);
        let twice = fault(|result| result.cases[0].config.flows[2].name = "small".to_owned());
        let words = "cases[0].config.flows[2]: another flow of the case is called \"small\" too";
        assert_eq!(twice, words);
        let changes: [fn(&mut ResultFile); 3] = [
            |result| result.cases[0].runs[0].flows.swap(0, 1),
            |result| drop(result.cases[0].runs[0].flows.pop()),
            |result| result.cases[0].runs[0].flows[2].to = "elsewhere".to_owned(),
        ];
        for change in changes {
            sample::starts(fault(change), "cases[0].runs[0].flows: they are not those");
        }
    }
}
