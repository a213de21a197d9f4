//! `ebb dashboard`: the address of the pages that show a running autoscaler, for a person's browser.
//!
//! On one machine `ebb up` serves these pages itself. Of a cluster this command serves them, at a port of
//! 127.0.0.1, and asks the autoscalers that decide with the person's kubeconfig, as `ebb get` does: they are
//! looked up for each question, so the next owner is found when one leaves.
//!
//! The address has a token behind its `#`, where no request carries it. A browser that is started with an
//! address shows that to every user of the machine, in the list of processes; so it is started with a file of
//! the person's alone, which leads there.

mod answer_id;
mod forwarder;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use anyhow::Context as _;
use autoscaler::PageServer;
use runtime::{Clock, PageLimits, PagePlaces};

use crate::autoscaler_api::AutoscalerApi;
use crate::cli::DashboardOptions;
use crate::output;
use forwarder::Forwarder;

pub(crate) fn run(options: DashboardOptions) -> anyhow::Result<ExitCode> {
    let DashboardOptions { place, port, print_only } = options;
    crate::up::runtime()?.block_on(async {
        match AutoscalerApi::find_at(&place, true).await? {
            AutoscalerApi::At(api) => show(&api.dashboard_address().await?, print_only),
            AutoscalerApi::Of(view) => {
                let cluster = Arc::new(view.into_cluster());
                cluster.find_owners().await?;
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
                    .with_context(|| format!("port {port} of 127.0.0.1 cannot be used (--port)"))?;
                let address = listener.local_addr()?;
                let forwarder = Forwarder::new(cluster);
                let server = PageServer::new(forwarder.router())
                    .with_kinds(autoscaler::page_kind)
                    .with_refusals(autoscaler::refusal);
                let places = PagePlaces::new(PageLimits::STANDARD, Clock::start());
                // A task of its own: the program that opens the browser may last as long as the browser does.
                // A panic in the task ends this command, which waits for it.
                let serving = tokio::spawn(server.serve(listener, &places)?);
                show(&format!("http://{address}/#{}", forwarder.token().expose()), print_only)?;
                output::print_line("it is served until Ctrl-C")?;
                match serving.await? {}
            }
        }
    })
}

/// Prints the address, and lets a browser open it where there is one.
fn show(address: &str, print_only: bool) -> anyhow::Result<ExitCode> {
    output::print_line(address)?;
    if !print_only && std::env::var_os("DISPLAY").or_else(|| std::env::var_os("WAYLAND_DISPLAY")).is_some() {
        open(address).unwrap_or_else(|error| {
            output::print_warning(&format!("no browser was opened ({error:#}); open the address above"));
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the person's browser with a file that leads to the address.
fn open(address: &str) -> anyhow::Result<()> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let file = folder.context("XDG_RUNTIME_DIR names no folder of this user's")?.join("ebb-dashboard.html");
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={address}\"><title>ebb</title>\n"
    );
    // One from before may belong to another mode; this one is new.
    let _ = fs::remove_file(&file);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    made.and_then(|mut made| made.write_all(page.as_bytes()))
        .with_context(|| format!("writing {}", file.display()))?;
    let mut browser = Command::new("xdg-open");
    browser.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = browser.status().context("starting xdg-open")?;
    anyhow::ensure!(status.success(), "xdg-open ended with {status}");
    Ok(())
}
