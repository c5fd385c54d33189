//! A headless Chromium with the console in it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_kit::needs::missing;
use brine_kit::ports::free_ports;
use brine_kit::process::{Daemon, children, proc};
use brine_kit::wait::wait_for;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

/// Longest wait for something to be on a page.
const WAIT: Duration = Duration::from_secs(20);

/// How a page is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Light,
    Dark,
    Narrow,
}

/// A browser with one window.
pub(crate) struct Browser {
    pub(crate) page: Client,
    // Ends last.
    driver: Daemon,
    _folder: tempfile::TempDir,
}

/// A command of Chromium's own protocol.
#[derive(Debug)]
struct Cdp(&'static str, Value);

impl WebDriverCompatibleCommand for Cdp {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(json!({"cmd": self.0, "params": self.1}).to_string()))
    }
}

/// Returns the checker of accessibility, or reports what is missing for these tests.
pub(crate) fn needed() -> Option<String> {
    for program in ["chromium", "chromedriver"] {
        if in_path(program).is_none() {
            missing(program, "run `make browser`");
            return None;
        }
    }
    let axe = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().map(|target| target.join("console-tests/axe.js"));
    let axe = axe.and_then(|axe: PathBuf| std::fs::read_to_string(axe).ok());
    if axe.is_none() {
        missing("axe-core", "run `make browser`");
    }
    axe
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

impl Browser {
    pub(crate) async fn start(look: Look) -> Self {
        let [port] = free_ports();
        let folder = tempfile::tempdir().expect("a folder");
        let program = in_path("chromedriver");
        let log = folder.path().join("driver.out");
        let driver = Daemon::start(&program.expect("chromedriver"), &[&format!("--port={port}")], &log);
        wait_for("chromedriver to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
        let (width, height) = if look == Look::Narrow { (360, 740) } else { (1280, 800) };
        let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
        let window = format!("--window-size={width},{height}");
        let capabilities = json!({"goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", profile, window]}});
        let Value::Object(capabilities) = capabilities else { unreachable!("an object") };
        let page = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("chromedriver starts Chromium");
        let browser = Self { page, driver, _folder: folder };
        let scheme = if look == Look::Dark { "dark" } else { "light" };
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.cdp("Emulation.setEmulatedMedia", scheme).await;
        if look == Look::Narrow {
            let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
            browser.cdp("Emulation.setDeviceMetricsOverride", size).await;
        }
        browser
    }

    /// Memory of the process that has the page (its proportional set), in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let mut processes = vec![self.driver.pid()];
        let mut largest = 0;
        while let Some(pid) = processes.pop() {
            processes.extend(children(pid));
            if proc(pid, "cmdline").is_some_and(|line| line.contains("--type=renderer")) {
                let rollup = proc(pid, "smaps_rollup").unwrap_or_default();
                let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB"));
                largest = largest.max(pss.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10);
            }
        }
        assert!(largest > 0, "no process has the page");
        largest
    }

    pub(crate) async fn cdp(&self, command: &'static str, params: Value) -> Value {
        self.page.issue_cmd(Cdp(command, params)).await.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Runs a script, and returns what it returns.
    pub(crate) async fn eval(&self, script: &str) -> Value {
        self.page.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until an expression is true.
    pub(crate) async fn until(&self, expression: &str) {
        let began = Instant::now();
        // What is looked at may not be there yet.
        let script = format!("try {{ return Boolean({expression}) }} catch {{ return false }}");
        while self.eval(&script).await != json!(true) {
            if began.elapsed() > WAIT {
                let text = self.eval("return document.body.innerText").await;
                panic!("not in time: {expression}\n{}", text.as_str().unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the page shows a text.
    pub(crate) async fn shows(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text))).await;
    }

    /// Presses keys, one after the other, where the focus is.
    pub(crate) async fn keys(&self, keys: &[&str]) {
        for key in keys {
            let (name, text) = match *key {
                "Enter" => ("Enter", "\r"),
                "Space" => (" ", " "),
                other => (other, ""),
            };
            let event =
                |kind: &str| json!({"type": kind, "key": name, "code": key, "windowsVirtualKeyCode": code_of(key)});
            let mut pressed = event(if text.is_empty() { "rawKeyDown" } else { "keyDown" });
            if !text.is_empty() {
                pressed["text"] = json!(text);
            }
            self.cdp("Input.dispatchKeyEvent", pressed).await;
            self.cdp("Input.dispatchKeyEvent", event("keyUp")).await;
        }
    }

    pub(crate) async fn types(&self, text: &str) {
        self.cdp("Input.insertText", json!({"text": text})).await;
    }

    /// Presses Tab until an element has the focus, and checks that it can be seen there.
    pub(crate) async fn tab_to(&self, selector: &str) {
        for _ in 0..60 {
            self.keys(&["Tab"]).await;
            let found = format!("return document.activeElement.matches({})", json!(selector));
            if self.eval(&found).await == json!(true) {
                let outline = self.eval("return getComputedStyle(document.activeElement).outlineStyle").await;
                assert_ne!(outline, "none", "{selector} does not show that it has the focus");
                return;
            }
        }
        panic!("Tab does not reach {selector}");
    }

    /// Checks the page with axe: WCAG 2.1 A and AA.
    pub(crate) async fn check(&self, axe: &str, what: &str) {
        // By the debugger: the page's own policy lets no such script in.
        self.cdp("Runtime.evaluate", json!({"expression": axe})).await;
        let script = "const done = arguments[0]; axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})
            .then((found) => done(found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html)}`)), (error) => done([`${error}`]))";
        let found = self.page.execute_async(script, Vec::new()).await.expect("axe runs");
        assert_eq!(found, json!([]), "{what}");
        let wide = self.eval("return document.documentElement.scrollWidth > innerWidth").await;
        assert_eq!(wide, json!(false), "{what} is wider than the window");
    }
}

fn code_of(key: &str) -> u32 {
    match key {
        "Tab" => 9,
        "Enter" => 13,
        "Escape" => 27,
        "Space" => 32,
        "PageDown" => 34,
        "End" => 35,
        "Home" => 36,
        "ArrowUp" => 38,
        "ArrowDown" => 40,
        _ => 0,
    }
}
