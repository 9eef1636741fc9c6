//! What a pod of scripts/kubernetes and of docs/templates runs, with the variables that it would get, and the manifests as
//! kubectl reads them. There is no cluster here.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testing::process::{Ended, Signal};

use super::job::{EXPECTED, Job, command, one_at_a_time};

const JOB: &str = "scripts/kubernetes/rocebench-job.yaml";
const INIT: &str = "docs/templates/kubernetes-init.yaml";

/// The objects of a manifest, each as text.
fn objects(manifest: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest);
    let text = std::fs::read_to_string(path).unwrap();
    text.split("\n---\n").map(str::to_owned).collect()
}

/// What a command of kubectl makes of an object without a cluster.
fn kubectl(words: &[&str], object: &str) -> Value {
    let mut kubectl = command("kubectl")
        .args(words)
        .args(["--local", "-o", "json", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("kubectl: {error}; scripts/setup --tests installs it"));
    let mut input = kubectl.stdin.take().unwrap();
    input.write_all(object.as_bytes()).unwrap();
    drop(input);
    let output = kubectl.wait_with_output().unwrap();
    assert!(output.status.success(), "{words:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether this client is older than Kubernetes 1.21, as Debian 12's is.
fn is_before_indexed_jobs() -> bool {
    let output = command("kubectl").args(["version", "--client", "-o", "json"]).output();
    let version: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let minor = version["clientVersion"]["minor"].as_str().unwrap();
    let digits = minor.trim_end_matches(|c: char| !c.is_ascii_digit());
    digits.parse::<u32>().unwrap() < 21
}

/// As its client's types have it; they lose a field that they do not know.
fn typed(object: &str) -> Value {
    if object.contains("kind: Service") {
        let (_, selector) = object.split_once("job-name: ").unwrap();
        kubectl(&["set", "selector", &format!("job-name={}", selector.trim())], object)
    } else {
        kubectl(&["set", "env", "CHECKED=1"], object)
    }
}

/// What `whole` lacks of `part`.
fn lacking(part: &Value, whole: &Value, path: &str) -> Vec<String> {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            let none = Value::Null;
            part.iter()
                .flat_map(|(key, value)| {
                    lacking(value, whole.get(key).unwrap_or(&none), &format!("{path}.{key}"))
                })
                .collect()
        }
        (Value::Array(part), Value::Array(whole)) if part.len() <= whole.len() => part
            .iter()
            .zip(whole)
            .enumerate()
            .flat_map(|(index, (part, whole))| lacking(part, whole, &format!("{path}[{index}]")))
            .collect(),
        (part, whole) if part == whole => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

#[test]
fn the_manifests_are_what_kubectl_knows() {
    let mut kinds = Vec::new();
    for object in [JOB, INIT].into_iter().flat_map(objects) {
        let mut written = kubectl(&["label", "checked=yes"], &object);
        // What this has added.
        written["metadata"].as_object_mut().unwrap().remove("labels");
        let mut lost = lacking(&written, &typed(&object), "");
        if is_before_indexed_jobs() {
            lost.retain(|it| it != ".spec.completionMode");
        }
        assert_eq!(lost, [""; 0]);
        kinds.push(written["kind"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds, ["Service", "Job", "Service", "Job"]);
}

#[test]
fn a_misspelt_field_is_found() {
    let object = objects(JOB)[1].replace("parallelism:", "paralelism:");
    let written = kubectl(&["label", "checked=yes"], &object);
    let lost = lacking(&written, &typed(&object), "");
    assert!(lost.contains(&".spec.paralelism".to_owned()), "{lost:?}");
}

fn free_port() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port().to_string()
}

/// What runs in the pod with this number, as `worker-1` and so on.
fn pod_of(index: u32) -> Command {
    let mut program = command(super::job::PROGRAM);
    program.env("JOB_COMPLETION_INDEX", index.to_string());
    program.env("NODE_NAME", format!("worker-{}", index + 1));
    program
}

/// Three pods of a manifest's job, which run the first of these containers with more options.
fn pods(manifest: &str, containers: &str, options: &[&str]) -> Vec<Ended> {
    let _jobs = one_at_a_time();
    let job = typed(&objects(manifest)[1]);
    let pod = &job["spec"]["template"]["spec"];
    let words: Vec<&str> = pod[containers][0]["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    // The parts of the manifest say the same.
    let name = job["metadata"]["name"].as_str().unwrap();
    let rank_0 = format!("--rank-0={name}-0.{}", pod["subdomain"].as_str().unwrap());
    let ranks = format!("--ranks={}", job["spec"]["completions"]);
    assert_eq!(job["spec"]["completions"], job["spec"]["parallelism"]);
    assert!(words.contains(&rank_0.as_str()) && words.contains(&ranks.as_str()), "{words:?}");
    assert_eq!(words[0], "rocebench");
    let port = format!("--port={}", free_port());
    let here = |word: &str| -> String {
        match word {
            word if word == rank_0 => "--rank-0=127.0.0.1".to_owned(),
            word if word == ranks => "--ranks=3".to_owned(),
            word if word.starts_with("--out=") => "--out=results".to_owned(),
            word if word.starts_with("--junit=") => "--junit=check.xml".to_owned(),
            word if word.starts_with("--duration=") => "--iters=200".to_owned(),
            word => word.to_owned(),
        }
    };
    let of_manifest: Vec<String> = words[1..].iter().map(|word| here(word)).collect();
    let mut arguments: Vec<&str> = of_manifest.iter().map(String::as_str).collect();
    arguments.retain(|word| !word.starts_with("--port="));
    arguments.push(&port);
    arguments.extend(options);
    let started: Vec<Job> = (0..3).map(|index| Job::start(pod_of(index), &arguments)).collect();
    let ended: Vec<Ended> = started.into_iter().map(|pod_job| pod_job.ended().exits(0)).collect();
    assert!(!ended[0].stdout.is_empty() && ended[1..].iter().all(|it| it.stdout.is_empty()));
    ended
}

#[test]
fn the_job_of_the_manifest_runs() {
    let ended = pods(JOB, "containers", &["--poll=event", "--warmup=0s"]);
    let names: Vec<_> =
        ended[0].json()["nodes"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["worker-1", "worker-2", "worker-3"]);
}

#[test]
fn the_init_containers_of_the_template_are_one_check() {
    let ended = pods(INIT, "initContainers", &["--dry-run"]);
    ended[0].shows(&["3 rounds of pairs"]);
}

/// The rank that holds up the others in lock-step is named: its packets are so slow that no busy machine has a say.
#[test]
fn ranks_move_in_lock_step() {
    let _jobs = one_at_a_time();
    let mesh = format!(
        "mesh --out results --ranks 3 --rank-0 127.0.0.1 --port {} --pattern ring --lock-step -s 1500 -D 2s --warmup 500ms \
         --timeout 18 --poll event --faults",
        free_port()
    );
    let started =
        ["rate=20M", "rate=20M", "rate=200K"].into_iter().zip(0..).map(|(faults, index)| {
            let words: Vec<&str> = mesh.split_whitespace().chain([faults]).collect();
            Job::start(pod_of(index), &words)
        });
    let jobs: Vec<Job> = started.collect();
    let ended: Vec<Ended> = jobs.into_iter().map(|pod_job| pod_job.ended().exits(0)).collect();
    let lock_step = ended[0].runs().remove(0).lock_step.unwrap();
    assert!(lock_step.step_ns.is_some() && lock_step.share_of_ideal.is_some(), "{lock_step:?}");
    let findings = ended[0].json()["findings"].as_array().unwrap();
    let straggler = findings.iter().find(|finding| finding["id"] == "straggler").unwrap();
    assert_eq!(straggler["subject"]["nodes"][0], "worker-3");
}

/// Who is there is told while others are waited for, and whoever is there ends when it is told to.
#[test]
fn pods_that_wait_for_others_say_so_and_end() {
    let _jobs = one_at_a_time();
    let port = free_port();
    let options = ["--ranks", "3", "--rank-0", "127.0.0.1", "--port", &port];
    let pods = [0, 1].map(|index: u32| {
        let mut pod = command(super::job::PROGRAM);
        pod.env("JOB_COMPLETION_INDEX", index.to_string());
        Job::start(pod, &[&["mesh"][..], &options].concat())
    });
    pods[0].program.await_line(0, "2 of 3 nodes have joined", EXPECTED);
    for pod in &pods {
        pod.program.signal(Signal::Terminate);
    }
    let [_, second] = pods.map(|pod| pod.ended().exits(1));
    assert_eq!(second.stderr().lines().count(), 1, "{}", second.stderr());
}
