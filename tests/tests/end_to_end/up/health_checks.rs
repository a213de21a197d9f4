//! Health checks and scrapes, which come for ever: they wake no pod and keep none awake.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tests::client::whole_answer;
use tests::{ConfigMap, Ebb, Revision, Service, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);

/// Asks again and again, as a load balancer does, until it is stopped.
struct HealthChecker {
    seen: Arc<SeenAnswers>,
    checking: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct SeenAnswers {
    is_over: AtomicBool,
    /// By who gave them: the app names its process.
    of_app: AtomicUsize,
    of_activator: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl HealthChecker {
    fn start(ebb: &Ebb, service: &Service, agent: &'static str) -> Self {
        let seen = Arc::new(SeenAnswers::default());
        let (address, host, noted) = (ebb.requests, service.host(), Arc::clone(&seen));
        let checking = tokio::spawn(async move {
            while !noted.is_over.load(Ordering::Relaxed) {
                noted.note(check(address, &host, agent).await);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        Self { seen, checking }
    }

    /// Waits until so many more were answered by one of the two.
    async fn until_more(&self, count: &AtomicUsize, more: usize) {
        let wanted = count.load(Ordering::Relaxed) + more;
        eventually("more answers", PATIENCE, || async {
            if count.load(Ordering::Relaxed) >= wanted { Ok(()) } else { Err(format!("{:?}", self.seen)) }
        })
        .await;
    }

    /// Every answer so far was 200.
    async fn stop(self) {
        self.seen.is_over.store(true, Ordering::Relaxed);
        self.checking.await.expect("it does not panic");
        let wrong = self.seen.wrong.lock().expect("nobody panicked");
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

impl SeenAnswers {
    fn note(&self, answer: std::io::Result<String>) {
        match answer {
            Ok(answer) if answer.starts_with("HTTP/1.1 200 ") => {
                let count =
                    if answer.contains("\r\nx-process: ") { &self.of_app } else { &self.of_activator };
                count.fetch_add(1, Ordering::Relaxed);
            }
            other => self.wrong.lock().expect("nobody panicked").push(format!("{other:?}")),
        }
    }
}

async fn check(address: SocketAddr, host: &str, agent: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request =
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn is_at_zero(revision: &Revision) -> bool {
    revision.wanted() == 0 && revision.pods().is_empty()
}

/// Requests of the service that went through its queue.
async fn queued_requests(ebb: &Ebb) -> Option<String> {
    let page = whole_answer(ebb.api, "localhost", "/metrics").await.expect("there is a page");
    let line = page.lines().find(|line| line.starts_with("activator_requests_total{"))?;
    line.rsplit(' ').next().map(str::to_owned)
}

fn cold(name: &str) -> Service {
    // The longest way: activators hold and measure everything else.
    Service::new(name).scaling("initial-scale", "0").scaling("target-burst-capacity", "-1")
}

fn config() -> ConfigMap {
    ConfigMap::short().set("allow-zero-initial-scale", "true")
}

#[tokio::test]
async fn under_health_checks_an_app_stays_at_zero_wakes_for_a_request_and_goes_back() {
    let service = cold("checked");
    let ebb = Ebb::up(std::slice::from_ref(&service), &config()).await;
    let checker = HealthChecker::start(&ebb, &service, "kube-probe/1.31");
    checker.until_more(&checker.seen.of_activator, 100).await;
    assert!(is_at_zero(&ebb.revision("checked").await.expect("ebb answers")));
    assert_eq!(queued_requests(&ebb).await.as_deref(), Some("0"));

    ebb.load("checked").one().await.assert_all_answered();
    let awake = ebb.until_pods("checked", 1).await;
    let name = awake.pods()[0]["name"].as_str().unwrap_or_default().to_owned();
    assert!(name.ends_with("-0001"), "{name} is the first pod that there ever was");
    assert_eq!(queued_requests(&ebb).await.as_deref(), Some("1"), "the one ordinary request");
    checker.until_more(&checker.seen.of_app, 20).await;

    ebb.until("checked", "zero again", is_at_zero).await;
    checker.until_more(&checker.seen.of_activator, 20).await;
    assert!(is_at_zero(&ebb.revision("checked").await.expect("ebb answers")));
    checker.stop().await;
}

/// The pods that run do not know of it; the activator does, and tells them.
#[tokio::test]
async fn a_user_agent_that_is_added_keeps_no_pod_awake_any_more() {
    let service = cold("scraped");
    let ebb = Ebb::up(std::slice::from_ref(&service), &config()).await;
    let checker = HealthChecker::start(&ebb, &service, "Scraper/2.1");
    ebb.until("scraped", "awake, by scrapes that count", |revision| {
        revision.ready() == 1 && revision.field("stable_value").as_f64().is_some_and(|value| value > 0.0)
    })
    .await;
    checker.until_more(&checker.seen.of_app, 50).await;
    ebb.configure(&config().set("ignore-user-agents", "HAProxy, Scraper/"));
    ebb.until("scraped", "zero", is_at_zero).await;
    checker.until_more(&checker.seen.of_activator, 20).await;
    checker.stop().await;
}
