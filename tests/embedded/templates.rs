//! The jobs of `docs/templates`, as a runner starts them, on the embedded device. There is no GitLab or GitHub here: their
//! own fields are not checked.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testing::process::{Call, Ended, script};
use testing::program::{call_by, rocebench};

/// One short run, of which no figure decides.
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
        self.call(rocebench().parent().unwrap(), other).run()
    }

    /// It with the program in this folder.
    fn call(&self, programs: &Path, other: &[(&str, &str)]) -> Call {
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let call = call_by("bash -eo pipefail job.sh", "").with_file("job.sh", &self.script);
        let call = self
            .variables
            .iter()
            .map(|(k, v)| (&**k, &**v))
            .chain(other.iter().copied())
            .fold(call, |call, (name, value)| call.env(name, value));
        call.env("PATH", &path).env("GITHUB_STEP_SUMMARY", "summary.md")
    }

    /// The job after five good nights and then these, which were so many times as fast; it measures the last of them.
    fn after(&self, nights: &[f64]) -> Ended {
        let programs = tempfile::tempdir().unwrap();
        let real = rocebench().display();
        let measures = "mkdir -p results && cp tonight.json results/tonight.json";
        let text = format!("[ \"$1\" != compare ] || exec '{real}' \"$@\"\n{measures}\n");
        script(&programs.path().join("rocebench"), &text);
        let (tonight, earlier) = nights.split_last().unwrap();
        let good = (1..).zip([1.0, 1.01, 0.99, 1.005, 0.995]);
        let baseline =
            good.map(|(day, speed)| (format!("rocebench-baseline/{day:02}"), day, speed));
        let kept =
            (6..).zip(earlier).map(|(day, speed)| (format!("results/{day:02}"), day, *speed));
        let last = ("tonight".to_owned(), 30, *tonight);
        let call = self.call(programs.path(), &[]);
        let with_nights = baseline.chain(kept).chain([last]).fold(call, |call, night| {
            let (name, day, speed) = night;
            call.with_file(&format!("{name}.json"), &result_of(day, speed))
        });
        with_nights.run()
    }

    fn does_what_it_says(&self) {
        // As it stands in the file, but that nothing is opened.
        let (_, options) =
            self.variables.iter().find(|(name, _)| name == "ROCEBENCH_OPTIONS").unwrap();
        let plan = format!("{options} --dry-run");
        self.run(&[("ROCEBENCH_OPTIONS", &plan)]).exits(0).shows(&["4 cases x 5 runs"]);

        let short = ("ROCEBENCH_OPTIONS", SHORT);
        let no_limits = ("ROCEBENCH_LIMITS", "");
        let good = self.run(&[short, no_limits]).exits(0);
        let file = |ended: &Ended, name: &str| std::fs::read(ended.folder().join(name)).ok();
        assert!(file(&good, "limits.xml").is_some() && file(&good, "verdict.xml").is_none());

        let limits = ("ROCEBENCH_LIMITS", "--fail-if gbit>0.000001");
        let failed = self.run(&[short, limits]).exits(1);
        assert!(file(&failed, "limits.xml").is_some());

        // The first night says nothing, and three slow ones, or three good ones after slow ones, decide.
        for (nights, code, words) in [
            (&[0.7][..], 0, "<error"),
            (&[0.7, 0.703, 0.698], 1, "<failure"),
            (&[0.7, 0.703, 0.698, 1.004, 0.997, 1.0], 0, "failures=\"0\" errors=\"0\""),
        ] {
            let ended = self.after(nights).exits(code);
            let verdict = file(&ended, "verdict.xml").unwrap();
            assert!(String::from_utf8(verdict).unwrap().contains(words), "{nights:?}");
        }
    }
}

/// A made-up result of a night of November that is so many times as fast as usual.
fn result_of(day: u32, speed: f64) -> String {
    let path = format!("{}/tests/data/compare/base.json", env!("CARGO_MANIFEST_DIR"));
    let mut result: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    result["started_at"] = format!("2026-11-{day:02}T03:17:00Z").into();
    let cases = result["cases"].as_array_mut().unwrap().iter_mut();
    for run in cases.flat_map(|case| case["runs"].as_array_mut().unwrap()) {
        let flow = &mut run["flows"][0];
        for (pointer, change) in [
            ("/window/seconds", 1.0 / speed),
            ("/totals/gbit_per_s", speed),
            ("/totals/mmsg_per_s", speed),
        ] {
            let figure = flow.pointer_mut(pointer).unwrap();
            *figure = (figure.as_f64().unwrap() * change).into();
        }
        for qp in flow["qps"].as_array_mut().unwrap() {
            qp["gbit_per_s"] = Value::Null;
        }
    }
    result.to_string()
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

/// What `rocebench mesh --check` says of three nodes.
const BROKEN: &str = "node01/mlx5_0 reaches none of its 2 peers: RETRY_EXC_ERR. Look at its port, cable and switch.\n\
                      node02/mlx5_1 to node03/mlx5_1 does not work: RETRY_EXC_ERR. Look at the path.\n";

/// A script of `docs/templates` behind `prelude`, where programs are as these say; what it left is in its folder.
fn template(prelude: &str, file: &str, program: (&str, i32)) -> Call {
    let path = format!("{}/docs/templates/{file}", env!("CARGO_MANIFEST_DIR"));
    let (problems, status) = program;
    let script = format!(
        "export PATH=$PWD:$PATH ROCEBENCH_PATH=$PWD:$PATH\nchmod +x rocebench scontrol logger\n{prelude}\n"
    );
    // The real program takes the words.
    let rocebench = format!(
        "#!/bin/bash\n'{}' \"$@\" --dry-run >/dev/null || exit\necho \"$@\" >words\ncat {}\nexit {status}\n",
        rocebench().display(),
        if problems.is_empty() { "/dev/null" } else { "problems" }
    );
    let scontrol = "#!/bin/bash\nif [ \"$1\" = show ]; then tr , '\\n' <<<\"$3\"; else echo \"$@\" >>drained; fi\n";
    call_by("bash -u script.sh", "")
        .with_file("script.sh", &script.replace("TEMPLATE", &path))
        .with_file("problems", problems)
        .with_file("rocebench", &rocebench)
        .with_file("scontrol", scontrol)
        .with_file("logger", "#!/bin/bash\ncat >log\n")
}

#[test]
fn a_node_is_taken_offline_only_for_what_is_its_own_fault() {
    let check = |host: &str, problems, status| {
        let prelude = format!(
            "HOSTNAME={host}.cluster\ndie() {{ echo \"died $*\"; }}\nlog() {{ echo \"logged $*\"; }}\n\
             . TEMPLATE\ncheck_rocebench 'node[02-03]/mlx5_[0-1]' 'mlx5_[0-1]'"
        );
        template(&prelude, "rocebench.nhc", (problems, status)).run()
    };
    let own = check("node01", BROKEN, 1).exits(1);
    own.shows(&["died 1 check_rocebench: node01/mlx5_0 reaches none of its 2 peers"]);
    for (host, problems, status) in [
        ("node02", BROKEN, 1),
        ("node0", BROKEN, 1),
        ("node01", "rocebench: error: node02 is busy: it has served node07 for 2 s\n", 1),
    ] {
        check(host, problems, status).exits(0).shows(&["logged check_rocebench: not of this node"]);
    }
    assert!(check("node01", "", 0).exits(0).stdout.is_empty());
}

#[test]
fn a_prolog_drains_the_node_at_fault_and_has_the_job_queued_again() {
    let prolog = |nodes: &str, problems, status| {
        let prelude = format!(
            "export SLURM_JOB_ID=7 SLURM_JOB_NODELIST={nodes} ROCEBENCH_RAILS='mlx5_[0-1]'\nbash TEMPLATE"
        );
        template(&prelude, "slurm-prolog.sh", (problems, status)).run()
    };
    let file = |ended: &Ended, name: &str| {
        std::fs::read_to_string(ended.folder().join(name)).unwrap_or_default()
    };
    let broken = prolog("node01,node02,node03", BROKEN, 1).exits(1);
    let drained = file(&broken, "drained");
    let reason = "update NodeName=node01 State=DRAIN Reason=rocebench: node01/mlx5_0 reaches none";
    assert!(drained.starts_with(reason) && drained.lines().count() == 1, "{drained}");
    assert!(file(&broken, "log").contains("job 7: node01/mlx5_0"));
    let well = prolog("node01,node02", "", 0).exits(0);
    assert!(file(&well, "words").starts_with("mesh --check --nodes @"));
    assert_eq!(file(&well, "drained") + &file(&well, "log"), "");
    let alone = prolog("node01", BROKEN, 1).exits(0);
    assert_eq!(file(&alone, "words"), "");
}
