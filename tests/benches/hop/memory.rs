//! How much memory a hop takes: idle, with a thousand requests in flight, and afterwards.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::bench::machine::Cores;
use tests::bench::process::{Memory, memory};
use tests::bench::proxies::{App, Place, Protocol, Server, haproxy, queue_proxy};
use tests::bench::wrk::{Requests, Wrk};
use tests::bench::{Goal, Options, Report, Samples, Table, api, executables};

const IN_FLIGHT: usize = 1000;

/// One contestant's memory at each stage.
struct Stages {
    idle: Memory,
    in_flight: Memory,
    /// While `wrk` sends on a thousand connections: the largest of many looks.
    under_load: Memory,
    later: Memory,
}

pub(crate) fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let cores = Cores::divide()?;
    let place = Place { folder: folder.path(), cores: &cores.contestant };
    let app = App::start(folder.path(), &cores.load)?;
    let ours = queue_proxy(&executables::ebb()?, app.target(Protocol::Http1), 0, place)?;
    let reference = haproxy("haproxy", app.target(Protocol::Http1), place)?;
    let columns = ["contestant", "idle", "1,000 in flight", "1,000 connections busy", "a minute later"];
    let mut table = Table::new("Memory in MB: resident (its share of shared pages)", &columns);
    for (name, server) in [("queue-proxy", &ours), ("HAProxy", &reference)] {
        let stages = stages(server, &app, &cores, folder.path(), options)?;
        let cell = |memory: Memory| format!("{:.1} ({:.1})", memory.rss, memory.pss);
        table.row([
            name.to_owned(),
            cell(stages.idle),
            cell(stages.in_flight),
            cell(stages.under_load),
            cell(stages.later),
        ]);
        let measured = [
            ("idle", stages.idle),
            ("in flight", stages.in_flight),
            ("busy", stages.under_load),
            ("later", stages.later),
        ];
        for (stage, memory) in measured {
            report.measured(&format!("memory, {stage}"), name, "RSS MB", &Samples(vec![memory.rss]));
            report.measured(&format!("memory, {stage}"), name, "PSS MB", &Samples(vec![memory.pss]));
        }
        if name == "queue-proxy" {
            report.goal(Goal::at_most("queue-proxy: RSS in MB, idle", stages.idle.rss, 12.0));
            let most = stages.in_flight.rss.max(stages.under_load.rss);
            report.goal(Goal::at_most("queue-proxy: RSS in MB, 1,000 requests in flight", most, 35.0));
            report.goal(Goal::at_most("queue-proxy: RSS in MB, a minute later", stages.later.rss, 20.0));
        }
    }
    report.table(table);
    Ok(())
}

fn stages(
    server: &Server,
    app: &App,
    cores: &Cores,
    folder: &Path,
    options: &Options,
) -> anyhow::Result<Stages> {
    let pid = server.process.pid();
    thread::sleep(options.choose(Duration::from_secs(5), Duration::from_millis(500)));
    let idle = memory(pid)?;
    let in_flight = with_held_requests(server, app)?;
    let under_load = while_busy(server, cores, folder, options)?;
    thread::sleep(options.choose(Duration::from_secs(60), Duration::from_secs(1)));
    Ok(Stages { idle, in_flight, under_load, later: memory(pid)? })
}

/// A thousand connections with a request each that the app holds.
fn with_held_requests(server: &Server, app: &App) -> anyhow::Result<Memory> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let mut clients = Vec::new();
    for _ in 0..IN_FLIGHT {
        let mut client = TcpStream::connect(address)?;
        client.write_all(b"GET /hold/8000 HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        clients.push(client);
    }
    api::until(Duration::from_secs(10), || {
        let held = app.count("held")?;
        ensure!(held >= 1000.0, "the app holds {held} requests");
        Ok(())
    })?;
    let memory = memory(server.process.pid())?;
    for client in &mut clients {
        client.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut answer = [0; 512];
        let length = client.read(&mut answer).context("a held request was not answered")?;
        ensure!(answer[..length].starts_with(b"HTTP/1.1 200"), "a held request was refused");
    }
    Ok(memory)
}

fn while_busy(server: &Server, cores: &Cores, folder: &Path, options: &Options) -> anyhow::Result<Memory> {
    let wrk = Wrk::new(folder, "memory", &Requests::Get)?;
    let wrk = wrk.path("/bytes/12").connections(IN_FLIGHT).cores(&cores.load);
    let time = options.turn(5);
    thread::scope(|scope| {
        let loading = scope.spawn(|| wrk.run(server.port, time));
        let mut most = Memory::default();
        while !loading.is_finished() {
            let now = memory(server.process.pid())?;
            if now.rss > most.rss {
                most = now;
            }
            thread::sleep(Duration::from_millis(50));
        }
        loading.join().expect("running wrk does not panic")?;
        Ok(most)
    })
}
