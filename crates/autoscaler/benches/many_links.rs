//! What does an autoscaler of thousands of revisions cost? (Promise P4: half a core and 300 MB, links included.)
//!
//! `cargo bench -p autoscaler`. A child process plays as many queue-proxies, one pod per revision, of which every tenth has traffic; this process
//! runs the autoscaler and measures itself. Every pod has a loopback address of its own, so that one listener can play them all.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autoscaler::{Autoscaler, AutoscalerConfig, DialRoute, Metrics};
use link::{PodHello, PodOrder, PodReport};
use platform::{Platform, PlatformCommand, PlatformEvent, PodFacts, RevisionFacts};
use runtime::{Clock, MetricsRegistry};
use scaling::{ClusterConfig, PodPhase, RevisionSettings};
use tokio::io::AsyncBufReadExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use vocabulary::{
    BootId, Concurrency, HopKey, Load, PodCount, PodName, PodState, RequestTimeouts, RevisionName, Sample,
};

const PODS: u32 = 9_500;
const WITH_TRAFFIC_EVERY: u32 = 10;
const MEASURED: Duration = Duration::from_secs(20);
/// Set for the child process.
const PLAY_PODS: &str = "EBB_BENCH_PLAY_PODS";

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    if std::env::var_os(PLAY_PODS).is_some() {
        runtime.block_on(play_pods());
    } else {
        runtime.block_on(measure());
    }
}

struct Facts(Mutex<Option<mpsc::Receiver<PlatformEvent>>>);

impl Platform for Facts {
    fn subscribe(&self) -> mpsc::Receiver<PlatformEvent> {
        self.0.lock().expect("no panics here").take().expect("subscribed once")
    }

    fn execute(&self, _command: PlatformCommand) {}
}

async fn measure() {
    let mut pods = tokio::process::Command::from(Command::new(std::env::current_exe().expect("a path")))
        .env(PLAY_PODS, "1")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("this executable starts");
    let mut lines = tokio::io::BufReader::new(pods.stdout.take().expect("piped")).lines();
    let port: u16 = lines.next_line().await.expect("a line").expect("a line").parse().expect("a port");

    let (facts, receiver) = mpsc::channel(1024);
    let metrics = MetricsRegistry::default();
    let config = AutoscalerConfig {
        epoch: 1,
        clock: Clock::start(),
        metrics: Metrics::register(&metrics),
        dial: DialRoute::Direct,
    };
    let before = usage();
    let autoscaler = Autoscaler::start(config, Arc::new(Facts(Mutex::new(Some(receiver)))));
    facts.send(PlatformEvent::ConfigChanged(Arc::new(ClusterConfig::default()))).await.expect("it listens");
    for index in 0..PODS {
        facts.send(PlatformEvent::RevisionChanged(Arc::new(revision(index)))).await.expect("it listens");
        let pods = vec![pod(index, port)];
        facts.send(PlatformEvent::PodsChanged { revision: name(index), pods }).await.expect("it listens");
    }
    facts.send(PlatformEvent::Synced).await.expect("it listens");
    while !metrics.encode().lines().any(|line| line == format!("autoscaler_links{{peer=\"pod\"}} {PODS}")) {
        // The page has 120,000 lines; making it is no part of what is measured.
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let linked = usage();
    println!(
        "linked {PODS} pods with {:.2} s of CPU; {} MB",
        linked.cpu_seconds - before.cpu_seconds,
        linked.resident_mb
    );
    // Twice, so that windows fill and buffers settle.
    for _ in 0..2 {
        let begin = usage();
        tokio::time::sleep(MEASURED).await;
        let end = usage();
        let cores = (end.cpu_seconds - begin.cpu_seconds) / MEASURED.as_secs_f64();
        println!("steady: {cores:.3} cores, {} MB", end.resident_mb);
    }
    autoscaler.stop().await;
}

fn name(index: u32) -> RevisionName {
    RevisionName::new("default", "service", &format!("revision-{index:05}")).expect("a name")
}

fn pod_name(index: u32) -> String {
    format!("revision-{index:05}-00001-0001")
}

fn revision(index: u32) -> RevisionFacts {
    RevisionFacts {
        name: name(index),
        settings: RevisionSettings::default(),
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        progress_deadline: Duration::from_secs(600),
        hosts: vec![format!("revision-{index:05}.default.example.com")],
        hop_keys: vec![HopKey::new("0123456789abcdef0123456789abcdef".to_owned())],
        wanted: PodCount::ONE,
        template: format!("revision-{index:05}-00001"),
    }
}

/// 127.1.0.1 and up.
fn address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 1)) + index)
}

fn pod(index: u32, port: u16) -> PodFacts {
    let address = SocketAddr::from((address(index), port));
    PodFacts {
        name: PodName::new(&pod_name(index)),
        phase: PodPhase::Running,
        leaving: false,
        platform_ready: None,
        requests: Some(address),
        link: Some(address),
        outdated: false,
        trouble: None,
        details: BTreeMap::new(),
    }
}

/// Plays every pod until it is killed.
async fn play_pods() {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.expect("a port");
    println!("{}", listener.local_addr().expect("bound").port());
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let std::net::IpAddr::V4(local) = stream.local_addr().expect("connected").ip() else { continue };
        let index = u32::from(local) - u32::from(address(0));
        tokio::spawn(play_pod(index, stream));
    }
}

async fn play_pod(index: u32, stream: tokio::net::TcpStream) {
    let (mut reader, mut writer) = link::accept::<PodOrder, PodReport>(stream);
    let load = if index.is_multiple_of(WITH_TRAFFIC_EVERY) {
        Load { concurrency: Concurrency::clamped(30.0), ..Load::default() }
    } else {
        Load::default()
    };
    let hello = PodHello {
        pod: PodName::new(&pod_name(index)),
        boot: BootId(u64::from(index)),
        state: PodState::Ready,
        detail: String::new(),
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        current_second: 60,
        history: (0..60).map(|second| Sample { second, load }).collect(),
    };
    if writer.send(&PodReport::Hello(hello)).await.is_err() {
        return;
    }
    let mut second = 60;
    loop {
        tokio::select! {
            order = reader.next() => if !matches!(order, Ok(Some(_))) { return },
            () = writer.idle() => {
                if writer.send(&PodReport::Load(Sample { second, load })).await.is_err() {
                    return;
                }
                second += 1;
            }
        }
    }
}

struct Usage {
    cpu_seconds: f64,
    resident_mb: u64,
}

/// This process's CPU time and memory, as Linux tells them (in hundredths of a second and in KiB).
fn usage() -> Usage {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this is Linux");
    let after_name = stat.rsplit(')').next().expect("the name is in brackets");
    let ticks: u32 = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u32>().expect("a number"))
        .sum();
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse().expect("a number");
    Usage { cpu_seconds: f64::from(ticks) / 100.0, resident_mb: kib / 1024 }
}
