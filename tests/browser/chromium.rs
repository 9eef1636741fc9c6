//! Headless Chromium over the DevTools protocol: JSON messages with a zero byte after each, through a pipe.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, waitpgid,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Ten times as long as an answer may take.
const WATCHDOG: Duration = Duration::from_secs(60);

const OPTIONS: &str = "--headless --remote-debugging-pipe --no-first-run --disable-gpu \
    --disable-dev-shm-usage --disable-extensions --disable-background-networking \
    --disable-component-update --disable-breakpad --disable-sync --force-color-profile=srgb";

const PROGRAMS: [&str; 4] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// The browser that tests share, and how many of them use it or wait for it.
static SHARED: Mutex<Option<Browser>> = Mutex::new(None);
static TESTS: AtomicUsize = AtomicUsize::new(0);

/// A new tab of the shared browser, which is one test's; the browser ends with the last of them.
pub struct Tab(MutexGuard<'static, Option<Browser>>);

impl Tab {
    pub fn open() -> Tab {
        TESTS.fetch_add(1, Ordering::SeqCst);
        // A test that failed leaves only its own tab behind.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.get_or_insert_with(Browser::start).open_tab();
        Tab(shared)
    }
}

impl Deref for Tab {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        self.0.as_ref().unwrap()
    }
}

impl DerefMut for Tab {
    fn deref_mut(&mut self) -> &mut Browser {
        self.0.as_mut().unwrap()
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        if TESTS.fetch_sub(1, Ordering::SeqCst) == 1 {
            *self.0 = None;
        }
    }
}

/// A browser with one open tab; it ends with this value.
pub struct Browser {
    process: Child,
    to: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: u64,
    tab: Value,
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
    let folders = folders.iter();
    let mut programs = PROGRAMS
        .iter()
        .flat_map(|name| folders.clone().map(move |folder: &PathBuf| folder.join(name)));
    let found = programs.find(|program| program.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "no Chromium, which this test needs: run scripts/setup --tests (Debian: apt-get install \
             chromium-headless-shell), or name one in the variable CHROMIUM"
        )
    })
}

impl Browser {
    /// Starts it, with a profile of its own and no way to the network.
    fn start() -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let errors = File::create(folder.path().join("stderr")).unwrap();
        // The protocol is spoken on descriptors 3 and 4, which the shell makes of its own two.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program())
            .args(OPTIONS.split(' '))
            .arg("--host-resolver-rules=MAP * ~NOTFOUND")
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
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
            tab: Value::Null,
            session: String::new(),
            events: Vec::new(),
            folder,
        }
    }

    /// Leaves the tab before, if there is one, for an empty one.
    fn open_tab(&mut self) {
        let before = std::mem::take(&mut self.tab);
        self.session.clear();
        self.events.clear();
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}));
        self.tab = target["targetId"].clone();
        if !before.is_null() {
            self.call("Target.closeTarget", &json!({"targetId": before}));
        }
        let session = json!({"targetId": self.tab, "flatten": true});
        let attached = self.call("Target.attachToTarget", &session);
        self.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
    }

    /// Asks, and waits for the answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let message = message.to_string() + "\0";
        let to = self.to.as_mut().unwrap();
        let sent = to.write_all(message.as_bytes());
        sent.unwrap_or_else(|error| panic!("{method}: {error}; {}", self.last_words()));
        let answer = self.wait_for(method, |reply| reply["id"] == id);
        let error = &answer["error"];
        assert!(error.is_null(), "{method}: {error}");
        answer["result"].clone()
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        self.events.clear();
        let url = format!("file://{}", file.display());
        let answer = self.call("Page.navigate", &json!({"url": url}));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        if !self.events.iter().any(is_load) {
            let load = self.wait_for("load", is_load);
            self.events.push(load);
        }
    }

    /// Shows the page in a window so wide, under a medium (`screen`, `print`) and a colour scheme of the system.
    pub fn show(&mut self, width_px: u32, medium: &str, scheme: &str) {
        let window =
            json!({"width": width_px, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &window);
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let media = json!({"media": medium, "features": features});
        self.call("Emulation.setEmulatedMedia", &media);
    }

    /// The value of a script's last expression.
    pub fn evaluate(&mut self, script: &str) -> Value {
        let script = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", &script);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The same, of a number.
    pub fn count(&mut self, script: &str) -> u64 {
        let value = self.evaluate(script);
        let count = value.as_u64();
        count.unwrap_or_else(|| panic!("{script}: {value}"))
    }

    /// On how many sheets the page is printed.
    pub fn sheets_of_paper(&mut self) -> usize {
        let paper = json!({"preferCSSPageSize": true, "transferMode": "ReturnAsBase64"});
        let answer = self.call("Page.printToPDF", &paper);
        let data = answer["data"].as_str().unwrap();
        let pdf = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
        let pdf = String::from_utf8_lossy(&pdf);
        pdf.matches("/Type /Page\n").count()
    }

    /// Presses and releases a key, such as `Tab`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, None),
            "Enter" => (13, Some("\r")),
            "Escape" => (27, None),
            "ArrowRight" => (39, None),
            "+" => (187, Some("+")),
            _ => panic!("no code for {key}"),
        };
        for (kind, typed) in [("keyDown", text), ("keyUp", None)] {
            let mut params =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if let Some(typed) = typed {
                params["text"] = json!(typed);
            }
            self.call("Input.dispatchKeyEvent", &params);
        }
    }

    fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self
                .messages
                .recv_timeout(WATCHDOG)
                .unwrap_or_else(|error| panic!("{what}: {error}; {}", self.last_words()));
            if wanted(&message) {
                return message;
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
        let Some(group) = Pid::from_raw(self.process.id().cast_signed()) else {
            return;
        };
        let _ = kill_process_group(group, Signal::KILL);
        // Until there is no process of the group left to wait for.
        while waitpgid(group, WaitOptions::empty()).is_ok() {}
    }
}
