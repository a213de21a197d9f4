//! Debian's Chromium, told by the protocol of its developer tools what to do, and what it saw.

use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::eventually;

/// How long a slow, busy machine may take for what takes a second.
const GENEROUS: Duration = Duration::from_secs(60);

/// One tab of a browser of its own. Dropping it ends the browser. Whatever goes wrong with the browser is a
/// panic: a suite or a benchmark has nothing to go on with.
#[derive(Debug)]
pub struct Tab {
    _browser: Child,
    _profile: TempDir,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
    asked: u64,
    /// What the page complained of: errors in its console, exceptions, reports of its policy.
    complaints: Vec<String>,
}

impl Tab {
    /// Starts Chromium with an empty profile, and opens an empty page.
    pub async fn open() -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder can be made");
        let browser = Command::new("chromium")
            // The suites run as root in a container, where Chromium's own sandbox cannot be made.
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--hide-scrollbars", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("Chromium is there; install it with: apt-get install -y chromium");
        let address = address_of_tools(profile.path()).await;
        let (socket, _) = connect_async(&address).await.expect("the browser takes a connection");
        let mut tab = Self {
            _browser: browser,
            _profile: profile,
            socket,
            session: String::new(),
            asked: 0,
            complaints: Vec::new(),
        };
        tab.open_another().await;
        tab
    }

    /// Opens an empty page in the same browser, and goes on there. The page before stays open, and what it
    /// complains of is heard.
    pub async fn open_another(&mut self) {
        // Orders without a session are the browser's own.
        self.session.clear();
        let target = self.tell("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.tell("Target.attachToTarget", attach).await;
        attached["sessionId"].as_str().expect("a session").clone_into(&mut self.session);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.tell(domain, json!({})).await;
        }
    }

    /// Gives an order and returns its result.
    pub async fn tell(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut order = json!({"id": self.asked, "method": method, "params": params});
        if !self.session.is_empty() {
            order["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(order.to_string())).await.expect("the browser runs");
        let number = self.asked;
        let answer = tokio::time::timeout(GENEROUS, self.answer(number)).await;
        let mut answer = answer.unwrap_or_else(|_| panic!("{method} was not answered within {GENEROUS:?}"));
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].take()
    }

    async fn answer(&mut self, number: u64) -> Value {
        loop {
            let message = self.socket.next().await.expect("the browser runs").expect("a message");
            let Message::Text(text) = message else { continue };
            let heard: Value = serde_json::from_str(text.as_str()).expect("the protocol is JSON");
            if heard["id"] == json!(number) {
                return heard;
            }
            self.complaints.extend(complaint(&heard));
        }
    }

    /// Goes to an address, without waiting until the page is there.
    pub async fn go(&mut self, address: &str) {
        self.tell("Page.navigate", json!({"url": address})).await;
    }

    /// Loads a page anew, without waiting until it is there. Addresses that differ behind the `#` alone are
    /// one document, which a browser does not load again, so the tab leaves it first.
    pub async fn load(&mut self, address: &str) {
        self.go("about:blank").await;
        self.go(address).await;
    }

    /// The value of an expression of JavaScript, awaited if it is a promise.
    pub async fn value(&mut self, expression: &str) -> Value {
        let value = self.evaluated(expression).await;
        value.unwrap_or_else(|exception| panic!("{expression}: {exception}"))
    }

    /// The same; the exception if the expression has no value.
    async fn evaluated(&mut self, expression: &str) -> Result<Value, Value> {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.tell("Runtime.evaluate", asked).await;
        let exception = answer["exceptionDetails"].take();
        if exception.is_null() { Ok(answer["result"]["value"].take()) } else { Err(exception) }
    }

    /// Waits until an expression is true. One that speaks of what is not there yet is not true yet.
    pub async fn until(&mut self, expression: &str) {
        let seen = async {
            while self.evaluated(expression).await != Ok(json!(true)) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(GENEROUS, seen).await.is_err() {
            let text = self.value("document.body.innerText").await;
            panic!("not within {GENEROUS:?}: {expression}; the page says {text}");
        }
    }

    /// Presses a key, such as `Tab` or `ArrowLeft`.
    pub async fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            other => panic!("no code of the key {other} is known here"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if key == "Enter" && kind == "keyDown" {
                event["text"] = json!("\r");
            }
            self.tell("Input.dispatchKeyEvent", event).await;
        }
    }

    /// Moves the pointer to a place of the window, in pixels from its left upper corner.
    pub async fn point_at(&mut self, (x, y): (f64, f64)) {
        self.tell("Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": x, "y": y})).await;
    }

    /// Presses Tab until an expression about the focused element `e` is true.
    pub async fn focus_by_keyboard(&mut self, expression: &str) {
        let focused = format!("((e) => {expression})(document.activeElement)");
        for _ in 0..100 {
            if self.value(&focused).await == json!(true) {
                return;
            }
            self.press("Tab").await;
        }
        panic!("the keyboard does not reach: {expression}");
    }

    /// The scheme of colours, and the width of the window in pixels.
    pub async fn show_as(&mut self, scheme: &str, width: u32) {
        self.show_in("", scheme, (width, 900)).await;
    }

    /// The medium (`print`, or none for the screen), the scheme of colours, and the size of the window in
    /// pixels.
    pub async fn show_in(&mut self, medium: &str, scheme: &str, (width, height): (u32, u32)) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.tell("Emulation.setEmulatedMedia", json!({"media": medium, "features": features})).await;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.tell("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// What the page has complained of since the last call.
    pub async fn complaints(&mut self) -> Vec<String> {
        // What it said before this answer has come with it.
        self.value("0").await;
        std::mem::take(&mut self.complaints)
    }
}

/// Where the browser takes orders, as it writes into its profile once it does.
async fn address_of_tools(profile: &Path) -> String {
    let file = profile.join("DevToolsActivePort");
    eventually("Chromium listens", GENEROUS, async || {
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
        let (port, path) = text.trim().split_once('\n').ok_or_else(|| format!("{text:?}"))?;
        Ok(format!("ws://127.0.0.1:{port}{path}"))
    })
    .await
}

/// What is wrong by an event of the browser's, if something is.
fn complaint(heard: &Value) -> Option<String> {
    let params = &heard["params"];
    let is_complaint = match heard["method"].as_str()? {
        "Runtime.exceptionThrown" => true,
        "Runtime.consoleAPICalled" => params["type"] == "error" || params["type"] == "assert",
        "Log.entryAdded" => params["entry"]["level"] == "error",
        _ => false,
    };
    is_complaint.then(|| params.to_string())
}
