//! What the processes of one machine hold: those of an idle pod, and the activator with requests in flight.

use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use tests::ConfigMap;
use tests::bench::process::{memory, parent_of};
use tests::bench::up::{Up, executables, service};
use tests::bench::{Goal, Options, Report, Samples, Table, api};

use super::held_requests::HeldRequests;

/// How long the pod may take to be ready.
const PATIENCE: Duration = Duration::from_secs(30);
const SERVICE: &str = "held";
/// The most that each process of a pod may have for itself, in MB.
const POD_MB: f64 = 2.0;
const QUEUE_PROXY_MB: f64 = 1.5;
/// The most that a request in flight may take at the activator, in KB (10^3 bytes).
const REQUEST_KB: f64 = 4.0;

/// `ebb up` with one service, before whose pods the activator stays.
struct RunningService {
    up: Up,
    host: String,
    /// What the API says of the processes of the first pod.
    details: Value,
}

impl RunningService {
    fn start(pods: usize) -> anyhow::Result<Self> {
        let [ebb, app] = executables()?;
        let service = service(SERVICE, &app).spec("containerConcurrency: 0");
        let count = pods.to_string();
        let config = ConfigMap::default()
            .set("target-burst-capacity", "-1")
            .set("min-scale", &count)
            .set("max-scale", &count);
        let up = Up::start(&ebb, std::slice::from_ref(&service), &config)?;
        let details = api::until(PATIENCE, || {
            let revision = up.revision(SERVICE)?;
            let found = revision["pods"].as_array().context("a revision has a list of pods")?;
            let ready = found.iter().filter(|pod| pod["state"] == "ready").count();
            ensure!(ready == pods, "{ready} pods of {pods} are ready");
            Ok(found[0]["details"].clone())
        })?;
        Ok(Self { up, host: service.host(), details })
    }

    fn detail(&self, name: &str) -> anyhow::Result<u32> {
        let number = self.details[name].as_str().and_then(|text| text.parse::<u32>().ok());
        number.with_context(|| format!("{name} in {}", self.details))
    }
}

/// The memory of `ebb pod` and of its queue-proxy while there is no request. There are two pods: pages of the
/// executable that the processes of every pod have are not private then, as on a machine with many.
pub(crate) fn measure_pod(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let pod = RunningService::start(2)?;
    thread::sleep(options.choose(Duration::from_secs(10), Duration::from_secs(1)));
    let columns = ["process", "private", "with its share of shared pages", "resident"];
    let mut table = Table::new("Processes of an idle pod, in MB", &columns);
    for (name, pid, limit) in [
        ("ebb pod", parent_of(pod.detail("app_pid")?)?, POD_MB),
        ("queue-proxy of a pod", pod.detail("queue_proxy_pid")?, QUEUE_PROXY_MB),
    ] {
        let memory = memory(pid)?;
        let numbers = [memory.private, memory.pss, memory.rss];
        let cells = numbers.map(|megabytes| format!("{megabytes:.2}"));
        table.row([name.to_owned()].into_iter().chain(cells));
        for (quantity, megabytes) in ["private MB", "PSS MB", "RSS MB"].into_iter().zip(numbers) {
            report.measured("memory of an idle pod", name, quantity, &Samples(vec![megabytes]));
        }
        report.goal(Goal::at_most(&format!("{name}: private MB, idle"), memory.private, limit));
    }
    pod.up.end()?;
    report.table(table);
    Ok(())
}

/// The memory of `ebb up` with as many requests in flight once more: the difference is that of requests, and
/// what the first ones brought about is in both.
pub(crate) fn measure_activator(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let pod = RunningService::start(1)?;
    let (further, hold_ms) = options.choose((1000, 15_000), (100, 5000));
    let head = format!("GET /hold/{hold_ms} HTTP/1.1\r\nHost: {}\r\n\r\n", pod.host);
    let mut requests = HeldRequests::of_app(pod.detail("app_port")?.try_into()?);
    let mut megabytes = vec![memory(pod.up.pid())?.private];
    for _ in 0..2 {
        requests.send(further, pod.up.requests(), &head)?;
        megabytes.push(memory(pod.up.pid())?.private);
    }
    requests.answered()?;
    pod.up.end()?;
    let mut table = Table::new("The activator's process, in MB of its own", &["requests in flight", "MB"]);
    for (times, megabytes) in (0..).zip(&megabytes) {
        table.row([(times * further).to_string(), format!("{megabytes:.2}")]);
    }
    report.table(table);
    let each = (megabytes[2] - megabytes[1]) * 1000.0 / f64::from(further);
    report.measured("requests in flight", "activator", "KB each", &Samples(vec![each]));
    report.goal(Goal::at_most("activator: KB for a request in flight", each, REQUEST_KB));
    Ok(())
}
