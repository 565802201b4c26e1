// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Debian's headless Chromium, told what to do in the DevTools protocol through a pipe: JSON messages
//! that end in NUL. (Crates that do this bring a hundred others and fetch the protocol at build time.)

use std::io::{pipe, BufRead, BufReader, PipeWriter, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::thread;

use command_fds::{CommandFdExt, FdMapping};
use serde_json::{json, Value};
use tempfile::TempDir;

use crate::machine::until;

/// As Debian calls it; ONRAMP_CHROMIUM names another.
const CHROMIUM: &str = "chromium-headless-shell";

/// A browser with one tab.
pub struct Browser {
    child: Child,
    to: PipeWriter,
    from: Receiver<Value>,
    session: String,
    last_id: u64,
    /// What it told unasked.
    pub events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    pub fn start() -> Browser {
        let program = std::env::var("ONRAMP_CHROMIUM").unwrap_or_else(|_| CHROMIUM.to_owned());
        let profile = tempfile::tempdir().unwrap();
        let ((theirs_in, to), (from, theirs_out)) = (pipe().unwrap(), pipe().unwrap());
        let mut command = Command::new(&program);
        command
            .args(["--headless", "--remote-debugging-pipe", "--disable-gpu"])
            // Its sandbox cannot be had as root; it opens nothing but our own page.
            .args([
                "--no-sandbox",
                "--no-first-run",
                "--disable-background-networking",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .fd_mappings(vec![
                FdMapping {
                    parent_fd: theirs_in.into(),
                    child_fd: 3,
                },
                FdMapping {
                    parent_fd: theirs_out.into(),
                    child_fd: 4,
                },
            ])
            .unwrap();
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {program} ({error}): make setup"));
        // It holds our copies of the browser's ends: were they open, its death would go unseen.
        drop(command);
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in BufReader::new(from).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("messages are JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Browser {
            child,
            to,
            from: messages,
            session: String::new(),
            last_id: 0,
            events: vec![],
            _profile: profile,
        };
        browser.open_tab();
        browser
    }

    fn open_tab(&mut self) {
        let tab = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let id = &tab["targetId"];
        let attached = self.call(
            "Target.attachToTarget",
            json!({"targetId": id, "flatten": true}),
        );
        self.session = attached["sessionId"].as_str().unwrap().to_owned();
        self.wait_for("document.readyState == 'complete'");
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Asks for `method` and waits for its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser lives");
        loop {
            let answer = self.from.recv();
            let mut answer = answer.unwrap_or_else(|_| panic!("{method}: the browser died"));
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// The value of a JavaScript expression.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", parameters);
        let failed = &answer["exceptionDetails"];
        assert!(failed.is_null(), "{expression}: {failed}");
        answer["result"]["value"].take()
    }

    /// Waits until a JavaScript expression is true.
    pub fn wait_for(&mut self, expression: &str) {
        until(expression, || self.evaluate(expression) == true);
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&mut self, url: &str) {
        self.load("Page.navigate", json!({"url": url}));
    }

    /// Loads the page again.
    pub fn reload(&mut self) {
        self.load("Page.reload", json!({}));
    }

    fn load(&mut self, method: &str, parameters: Value) {
        let before = self.events.len();
        self.call(method, parameters);
        let is_loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events[before..].iter().any(is_loaded) {
            let event = self.from.recv();
            self.events.push(event.expect("the browser lives"));
        }
    }

    /// Sets what the page is shown on: CSS pixels.
    pub fn resize(&mut self, width: u32, height: u32, is_phone: bool) {
        let screen =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        self.call("Emulation.setDeviceMetricsOverride", screen);
        self.call(
            "Emulation.setTouchEmulationEnabled",
            json!({"enabled": is_phone}),
        );
    }

    /// Sets the theme that the system prefers.
    pub fn prefer(&mut self, theme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": theme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// Moves the mouse to the middle of the first element that `selector` matches, and presses it if
    /// asked to.
    pub fn point(&mut self, selector: &str, press: bool) {
        let script = format!(
            "(() => {{ const e = document.querySelector({selector:?}); \
             e.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const r = e.getBoundingClientRect(); \
             return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        );
        let at = self.evaluate(&script);
        self.mouse("mouseMoved", &at[0], &at[1]);
        if press {
            self.mouse("mousePressed", &at[0], &at[1]);
            self.mouse("mouseReleased", &at[0], &at[1]);
        }
    }

    /// A mouse event at CSS pixels of the view.
    pub fn mouse(&mut self, kind: &str, x: &Value, y: &Value) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let mouse = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", mouse);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
