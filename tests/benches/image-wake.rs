//! How long it takes from a request for a sleeping Service that is an image to its answer, beside `podman
//! run` by hand with the same arguments.
//!
//! `cargo bench -p tests --bench image-wake`. Both are in the network of the host, and take turns. It needs
//! podman (`apt-get install -y podman runc`).

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::resource::{Resource, getrlimit};
use tests::Service;
use tests::bench::up::{Up, asleep, executables};
use tests::bench::{Goal, Options, Report, Samples, Table, api, clock};
use tests::client::whole_answer;
use tests::podman::{Podman, SETTINGS_VARIABLE};
use tests::ports::unused_port;
use tokio::runtime::Runtime;

const IMAGE: &str = "localhost/ebb-bench-app:1";
const SERVICE: &str = "sleeper";
/// The container that is started by hand.
const BY_HAND: &str = "ebb-bench-by-hand";
/// How long a start, and a Service's way to sleep, may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two attempts to ask.
const PAUSE: Duration = Duration::from_millis(1);
/// How much longer the wake may take.
const RATIO_MAX: f64 = 1.05;

fn main() -> anyhow::Result<()> {
    let options = Options::read_whole();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image-wake");
    if std::env::var_os(SETTINGS_VARIABLE).is_none() {
        // Once more with settings that hold for all that is started.
        let podman = Podman::in_folder(folder);
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).env(SETTINGS_VARIABLE, podman.settings());
        return Err(command.exec().into());
    }
    let [ebb, app] = executables()?;
    let podman = Podman::in_folder(folder);
    podman.make_image(IMAGE, &app);
    let rounds = options.rounds(15, 2);
    let bench =
        Bench { podman, runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()? };
    let (wakes, controls) = bench.measure(&ebb, rounds)?;
    let mut report = Report::new("image-wake", options.quick, rounds);
    let mut table = Table::new("from the start to the answer, in ms", &["start", "found"]);
    for (name, samples) in [("wake", &wakes), ("by hand", &controls)] {
        table.row([name.to_owned(), samples.summary(0)]);
        report.measured("image", name, "ms", samples);
    }
    report.table(table);
    let ratio = wakes.median() / controls.median();
    report.goal(Goal::at_most("times as long as `podman run` by hand", ratio, RATIO_MAX));
    report.finish(options.json.as_deref())
}

struct Bench {
    podman: Podman,
    runtime: Runtime,
}

impl Bench {
    /// The milliseconds of wakes, and of starts by hand.
    fn measure(&self, ebb: &Path, rounds: usize) -> anyhow::Result<(Samples, Samples)> {
        let services = [Service::of_image(SERVICE, IMAGE, &[])];
        let arguments = ["--images", "podman", "--images-network", "host"];
        let up = Up::start_with(ebb, &services, &asleep(), &arguments)?;
        // A run that failed may have left its container, whose name would be taken.
        let _ = self.remove_by_hand();
        // The first wake looks for the image, too.
        self.wake(&up)?;
        let (mut wakes, mut controls) = (Samples::new(), Samples::new());
        for _ in 0..rounds {
            wakes.push(self.wake(&up)?);
            controls.push(self.by_hand()?);
        }
        up.end()?;
        Ok((wakes, controls))
    }

    fn wake(&self, up: &Up) -> anyhow::Result<f64> {
        api::until(PATIENCE, || up.expect_nothing_of(SERVICE))?;
        let began = clock::now();
        let host = format!("{SERVICE}.default.example.com");
        let answer = self.runtime.block_on(whole_answer(up.requests(), &host, "/"))?;
        let took = clock::since(began);
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        Ok(clock::millis(took))
    }

    fn by_hand(&self) -> anyhow::Result<f64> {
        let port = unused_port();
        let began = clock::now();
        let mut container = self.start(port)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let answered = loop {
            let answer = self.runtime.block_on(whole_answer(address, "localhost", "/"));
            if answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                break clock::since(began);
            }
            ensure!(clock::since(began) < PATIENCE, "no answer by hand within {PATIENCE:?}");
            ensure!(container.try_wait()?.is_none(), "the container by hand has ended");
            std::thread::sleep(PAUSE);
        };
        self.remove_by_hand().map_err(anyhow::Error::msg)?;
        container.wait().context("the container by hand")?;
        Ok(clock::millis(answered))
    }

    /// Removes the container that was started by hand, or says why not.
    fn remove_by_hand(&self) -> Result<String, String> {
        self.podman.run(&["rm", "--force", "--time", "0", BY_HAND])
    }

    /// Starts the container as `ebb` does.
    fn start(&self, port: u16) -> anyhow::Result<Child> {
        let variable = format!("PORT={port}");
        let limit = |name: &str, resource| -> anyhow::Result<String> {
            let (soft, hard) = getrlimit(resource)?;
            let written = |limit: u64| if limit == u64::MAX { "-1".to_owned() } else { limit.to_string() };
            Ok(format!("{name}={}:{}", written(soft), written(hard)))
        };
        let files = limit("nofile", Resource::RLIMIT_NOFILE)?;
        let processes = limit("nproc", Resource::RLIMIT_NPROC)?;
        let words = [
            "run",
            "--name",
            BY_HAND,
            "--pull",
            "missing",
            "--log-driver",
            "none",
            "--network",
            "host",
            "--ulimit",
            &files,
            "--ulimit",
            &processes,
            "--env",
            &variable,
            IMAGE,
        ];
        let mut command = self.podman.command(&words);
        Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)
    }
}
