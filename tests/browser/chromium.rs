//! Headless Chromium over the DevTools protocol: JSON messages with a zero byte after each, through a pipe. It must
//! not know what page it shows.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, waitpgid,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long an answer may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is started: seldom it crashes before it has seen a page.
const STARTS: usize = 3;

const OPTIONS: &str = "--headless --remote-debugging-pipe --no-first-run --disable-gpu \
    --disable-dev-shm-usage --disable-extensions --disable-background-networking \
    --disable-component-update --disable-breakpad --disable-sync --force-color-profile=srgb";

const PROGRAMS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

/// A browser with one open tab; it ends with this value.
pub struct Browser {
    process: Child,
    to: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: u64,
    session: String,
    /// What happened in the tab since the last [`Browser::open`].
    pub events: Vec<Value>,
    folder: TempDir,
}

fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("CHROMIUM") {
        return program.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    PROGRAMS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|program| program.is_file())
        .unwrap_or_else(|| {
            panic!(
                "no Chromium, which this test needs: run scripts/setup --tests (Debian: apt-get install \
                 chromium-headless-shell), or name one in the variable CHROMIUM"
            )
        })
}

impl Browser {
    /// Starts it, with a profile of its own and no way to the network.
    pub fn start() -> Browser {
        let mut died = String::new();
        for _ in 0..STARTS {
            let mut browser = Browser::spawn();
            let made = browser.ask("Target.createTarget", &json!({"url": "about:blank"}));
            match made {
                Ok(target) => {
                    browser.attach(&target["targetId"]);
                    return browser;
                }
                Err(reason) => died = reason,
            }
        }
        panic!("{died}, {STARTS} times");
    }

    fn spawn() -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let errors = File::create(folder.path().join("stderr")).unwrap();
        // The protocol is spoken on descriptors 3 and 4, which the shell makes of its own two.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program())
            .args(OPTIONS.split(' '))
            .arg("--host-resolver-rules=MAP * ~NOTFOUND")
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ));
        if rustix::process::geteuid().is_root() {
            // Its sandbox refuses root; the page shown is our own.
            command.arg("--no-sandbox");
        }
        // A group of its own, whose orphans come to this process: all of them can be waited for.
        set_child_subreaper(Some(getpid())).unwrap();
        let mut process = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let from = process.stdout.take().unwrap();
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(from).split(0) {
                let Ok(message) = message else { break };
                let value = serde_json::from_slice(&message).unwrap();
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let to = process.stdin.take();
        Browser {
            process,
            to,
            messages,
            next_id: 0,
            session: String::new(),
            events: Vec::new(),
            folder,
        }
    }

    fn attach(&mut self, target: &Value) {
        let attached = self.call(
            "Target.attachToTarget",
            &json!({"targetId": target, "flatten": true}),
        );
        attached["sessionId"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.session);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
    }

    /// Asks, and waits for the answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        answer.unwrap_or_else(|reason| panic!("{reason}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let to = self.to.as_mut().unwrap();
        let sent = to
            .write_all(message.to_string().as_bytes())
            .and_then(|()| to.write_all(&[0]))
            .and_then(|()| to.flush());
        if let Err(error) = sent {
            return Err(format!("{method}: {error}; {}", self.last_words()));
        }
        let answer = self.wait_for(method, |message| message["id"] == id)?;
        match &answer["error"] {
            Value::Null => Ok(answer["result"].clone()),
            error => Err(format!("{method}: {error}")),
        }
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        self.events.clear();
        let url = format!("file://{}", file.display());
        let answer = self.call("Page.navigate", &json!({"url": url}));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        if !self.events.iter().any(is_load) {
            let load = self.wait_for("load", is_load);
            self.events
                .push(load.unwrap_or_else(|reason| panic!("{reason}")));
        }
    }

    /// Shows the page in a window so wide, under a medium (`screen`, `print`) and a colour scheme of the system.
    pub fn show(&mut self, width_px: u32, medium: &str, scheme: &str) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width_px, "height": 900, "deviceScaleFactor": 1, "mobile": false}),
        );
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({"media": medium, "features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
    }

    /// The value of a script's last expression.
    pub fn evaluate(&mut self, script: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            &json!({"expression": script, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// On how many sheets the page is printed.
    pub fn sheets_of_paper(&mut self) -> usize {
        let paper = json!({"preferCSSPageSize": true, "transferMode": "ReturnAsBase64"});
        let answer = self.call("Page.printToPDF", &paper);
        let data = answer["data"].as_str().unwrap();
        let pdf = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        let text = String::from_utf8_lossy(&pdf);
        text.matches("/Type /Page\n").count()
    }

    /// Presses and releases a key, such as `Tab`.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowRight" => 39,
            "+" => 187,
            _ => panic!("no code for {key}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut params =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && ["Enter", "+"].contains(&key) {
                params["text"] = json!(if key == "Enter" { "\r" } else { key });
            }
            self.call("Input.dispatchKeyEvent", &params);
        }
    }

    fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(message) = self.messages.recv_timeout(left) else {
                let words = self.last_words();
                return Err(format!("{what}: no answer from Chromium; {words}"));
            };
            if wanted(&message) {
                return Ok(message);
            }
            if message["sessionId"] == self.session.as_str() {
                self.events.push(message);
            }
        }
    }

    fn last_words(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }
}

fn is_load(message: &Value) -> bool {
    message["method"] == "Page.loadEventFired"
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when nobody speaks to it any more, and its own processes with it.
        self.to = None;
        let Some(group) = Pid::from_raw(self.process.id().cast_signed()) else {
            return;
        };
        let deadline = Instant::now() + Duration::from_secs(5);
        // Until there is no process of the group left to wait for.
        while waitpgid(group, WaitOptions::NOHANG).is_ok() {
            if Instant::now() > deadline {
                let _ = kill_process_group(group, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
