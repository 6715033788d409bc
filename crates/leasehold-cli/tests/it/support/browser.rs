//! A headless Chromium, driven with WebDriver.
//!
//! # Source
//! W3C, "WebDriver": the commands and their paths. <https://www.w3.org/TR/webdriver2/>

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::bounds::PATIENCE;
use ureq::Agent;
use ureq::http::Request;

use super::wait_for;

/// The browser, with a profile of its own.
pub(crate) struct Browser {
    driver: Child,
    agent: Agent,
    session: String,
    _profile: TempDir,
}

/// Keys that are no characters.
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const ESCAPE: &str = "\u{e00c}";
pub(crate) const DOWN: &str = "\u{e015}";

impl Browser {
    pub(crate) fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is needed: apt-get install chromium chromium-driver");
        let port = BufReader::new(driver.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                line.split_once("started successfully on port ").map(|(_, port)| port.trim_end_matches('.').to_owned())
            })
            .expect("chromedriver names its port");
        let agent = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into();
        let profile = tempfile::tempdir().unwrap();
        let mut browser =
            Self { driver, agent, session: format!("http://127.0.0.1:{port}/session"), _profile: profile };
        let session = browser.ask("POST", "", &json!({ "capabilities": browser.capabilities() }));
        browser.session = format!("{}/{}", browser.session, session["sessionId"].as_str().unwrap());
        browser
    }

    fn capabilities(&self) -> Value {
        let profile = format!("--user-data-dir={}", self._profile.path().display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            // Containers have little shared memory.
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1400,900",
            &profile,
        ];
        json!({ "alwaysMatch": { "goog:chromeOptions": { "args": arguments }, "goog:loggingPrefs": { "browser": "ALL" } } })
    }

    pub(crate) fn open(&self, url: &str) {
        self.ask("POST", "/url", &json!({ "url": url }));
    }

    /// What the body of a function returns in the page.
    pub(crate) fn script(&self, body: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({ "script": body, "args": [] }))
    }

    /// Waits until an expression is true in the page.
    pub(crate) fn until(&self, expression: &str) {
        wait_for(expression, || (self.script(&format!("return Boolean({expression})")) == true).then_some(()));
    }

    /// Presses these keys one after the other, wherever the focus is.
    pub(crate) fn press(&self, keys: &str) {
        let press = |key: char| ["keyDown", "keyUp"].map(|what| json!({ "type": what, "value": key.to_string() }));
        let actions: Vec<_> = keys.chars().flat_map(press).collect();
        self.ask("POST", "/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    /// What the user's system prefers: `light` or `dark`.
    pub(crate) fn prefer(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let command = json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "features": features } });
        self.ask("POST", "/goog/cdp/execute", &command);
    }

    /// What the browser complains about, since it was asked last.
    pub(crate) fn complaints(&self) -> Value {
        self.ask("POST", "/se/log", &json!({ "type": "browser" }))
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.session));
        let request = request.header("content-type", "application/json").body(body.to_string()).unwrap();
        let mut answer = self.agent.run(request).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        assert!(answer.status().is_success(), "{method} {path} {body}: {text}");
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        answer["value"].take()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The end of the session ends the browser.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
