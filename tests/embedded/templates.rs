//! The jobs of `docs/templates`, as a runner starts them, on the embedded device. There is no GitLab or GitHub here: their
//! own fields are not checked.

use std::process::{Command, Stdio};

use serde_json::Value;
use testing::process::Ended;
use testing::program::{call_by, rocebench};

/// One run a side: too few for a verdict, so that no figure decides.
const SHORT: &str =
    "-d soft0 --op write -q 2 -s 4K --iters 200 --warmup 0s --timeout 18 --poll event --quiet";

struct Job {
    script: String,
    variables: Vec<(String, String)>,
}

impl Job {
    /// That of a file: its variables are `variables` there, and its commands in all of `lines`.
    fn new(file: &str, variables: &str, lines: impl Fn(&Value) -> Vec<Value>) -> Job {
        let path = format!("{}/docs/templates/{file}", env!("CARGO_MANIFEST_DIR"));
        // Debian's, for which scripts/setup --tests installs python3-yaml.
        let mut python = Command::new("/usr/bin/python3");
        let program = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))";
        let yaml = std::fs::File::open(path).unwrap();
        let to_json = python.args(["-c", program]).stdin(yaml).stderr(Stdio::inherit());
        let read: Value = serde_json::from_slice(&to_json.output().unwrap().stdout).unwrap();
        let variables = read.pointer(variables).unwrap().as_object().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let commands: Vec<String> = lines(&read).iter().map(text).collect();
        assert_eq!(commands.len(), 2, "{commands:?}");
        Job {
            script: commands.join("\n"),
            variables: variables.map(|(k, v)| (k.clone(), text(v))).collect(),
        }
    }

    /// Runs it with its own variables besides these.
    fn run(&self, other: &[(&str, &str)]) -> Ended {
        let built = rocebench().parent().unwrap().display();
        let path = format!("{built}:{}", std::env::var("PATH").unwrap());
        let call = call_by("bash -eo pipefail job.sh", "").with_file("job.sh", &self.script);
        let call = self
            .variables
            .iter()
            .map(|(k, v)| (&**k, &**v))
            .chain(other.iter().copied())
            .fold(call, |call, (name, value)| call.env(name, value));
        call.env("PATH", &path).env("GITHUB_STEP_SUMMARY", "summary.md").run()
    }

    fn does_what_it_says(&self) {
        // As it stands in the file, but that nothing is opened.
        let (_, options) =
            self.variables.iter().find(|(name, _)| name == "ROCEBENCH_OPTIONS").unwrap();
        let plan = format!("{options} --dry-run");
        self.run(&[("ROCEBENCH_OPTIONS", &plan)]).exits(0).shows(&["4 cases x 3 runs"]);

        let short = ("ROCEBENCH_OPTIONS", SHORT);
        let no_limits = ("ROCEBENCH_LIMITS", "");
        let good = self.run(&[short, no_limits]).exits(0);
        let file = |ended: &Ended, name: &str| std::fs::read(ended.folder().join(name)).ok();
        assert!(file(&good, "limits.xml").is_some() && file(&good, "verdict.xml").is_none());

        let results = good.folder().join("results");
        let baseline = ("ROCEBENCH_BASELINE", results.to_str().unwrap());
        let compared = self.run(&[short, no_limits, baseline]).exits(0);
        assert!(file(&compared, "verdict.xml").is_some());

        let limits = ("ROCEBENCH_LIMITS", "--fail-if gbit>0.000001");
        let failed = self.run(&[short, limits, baseline]).exits(1);
        assert!(file(&failed, "limits.xml").is_some() && file(&failed, "verdict.xml").is_none());
    }
}

#[test]
fn the_job_of_gitlab_measures_compares_and_fails() {
    Job::new("gitlab-ci.yml", "/rocebench/variables", |file: &Value| {
        list(&file["rocebench"]["script"])
    })
    .does_what_it_says();
}

#[test]
fn the_workflow_of_github_measures_compares_and_fails() {
    Job::new("github-workflow.yml", "/jobs/rocebench/env", |file: &Value| {
        list(&file["jobs"]["rocebench"]["steps"])
            .into_iter()
            .filter_map(|step| step.get("run").cloned())
            .collect()
    })
    .does_what_it_says();
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap().clone()
}
