//! Debian's own Prometheus before the metrics of a test, its answers, and the questions of the Grafana board.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::client::whole_answer;
use crate::ports::unused_address;

/// By this a question has an answer where no series has begun yet: a panel says 0 while all is well.
const ELSE_ZERO: &str = " or on() vector(0)";

/// A running Prometheus; ends when it is dropped.
#[derive(Debug)]
pub struct Prometheus {
    child: Child,
    /// The address of its API.
    pub address: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Starts Prometheus, which scrapes `target` every second.
    pub fn start(folder: &Path, target: SocketAddr) -> Self {
        Self::scrape(folder, &format!("honor_labels: true, static_configs: [{{targets: ['{target}']}}]"))
    }

    /// Scrapes every second whatever one part of `scrape_configs` says.
    pub fn scrape(folder: &Path, job: &str) -> Self {
        Self::scrape_all(folder, &format!("[{{job_name: jobs, {job}}}]"))
    }

    /// Scrapes every second whatever the whole of `scrape_configs` says, in YAML or JSON.
    pub fn scrape_all(folder: &Path, jobs: &str) -> Self {
        let address = unused_address();
        let config = format!("global: {{scrape_interval: 1s}}\nscrape_configs: {jobs}\n");
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).expect("the folder can be written");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`prometheus` is there; install it with: apt-get install -y prometheus");
        Self { child, address }
    }

    /// The answer to a question of one moment: series and their values.
    pub async fn ask(&self, question: &str) -> Result<Value, String> {
        self.ask_at("/api/v1/query?query=", question).await
    }

    /// The answer to a question at another path of the API, which ends where the question begins.
    pub async fn ask_at(&self, path: &str, question: &str) -> Result<Value, String> {
        let encoded: Vec<String> = question.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let path = format!("{path}{}", encoded.concat());
        let answer = whole_answer(self.address, "localhost", &path).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
        let json: Value =
            serde_json::from_str(&body[body.find('{').unwrap_or(0)..=body.rfind('}').unwrap_or(0)])
                .map_err(|error| format!("{error}: {body}"))?;
        if json["status"] == "success" {
            Ok(json["data"].clone())
        } else {
            Err(format!("{question}: {json}"))
        }
    }
}

/// The Grafana board of the repository.
pub fn board() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/components/grafana-board/ebb.json");
    let text = std::fs::read_to_string(file).expect("the board is there");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The questions of a board, each after the title of its panel; without the zero in the place of series that
/// are not there.
pub fn questions(board: &Value) -> Vec<(String, String)> {
    let mut questions = Vec::new();
    for panel in board["panels"].as_array().expect("a board has panels") {
        let title = panel["title"].as_str().expect("a panel has a title");
        for target in panel["targets"].as_array().into_iter().flatten() {
            let question = target["expr"].as_str().expect("a target asks something");
            let question = question.strip_suffix(ELSE_ZERO).unwrap_or(question);
            questions.push((title.to_owned(), question.to_owned()));
        }
    }
    questions
}

/// A question as Grafana fills it in, for namespaces and revisions that match these expressions.
pub fn filled_in(question: &str, namespaces: &str, revisions: &str) -> String {
    let question = question.replace("$namespace", namespaces).replace("$revision", revisions);
    question.replace("$__rate_interval", "10s")
}
