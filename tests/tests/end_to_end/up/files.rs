//! What happens to the files while it runs, and which it takes.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use tests::ebb::{descendants, executable, is_alive};
use tests::{ConfigMap, Ebb, Service, eventually};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::up::lifecycle::HEARS_HANGUPS;

const PATIENCE: Duration = Duration::from_secs(30);

async fn until_problem(ebb: &Ebb, text: &str) {
    eventually(&format!("the problem {text:?}"), PATIENCE, || async {
        let (_, stdout, stderr) = ebb.run(&["get"]).await;
        if stderr.contains(text) { Ok(()) } else { Err(stdout + &stderr) }
    })
    .await;
}

async fn until_revisions(ebb: &Ebb, names: &[&str]) {
    eventually(&format!("the revisions {names:?}"), PATIENCE, || async {
        let json = ebb.json(&["get", "-o", "json"]).await?;
        let revisions = json["revisions"].as_array().cloned().unwrap_or_default();
        let found: Vec<&str> = revisions.iter().filter_map(|revision| revision["name"].as_str()).collect();
        let expected: Vec<String> = names.iter().map(|name| format!("default/service/{name}")).collect();
        if found == expected { Ok(()) } else { Err(json.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_file_that_becomes_empty_removes_nothing_and_one_that_is_gone_does() {
    let service = Service::new("kept").scaling("min-scale", "1");
    let ebb = Ebb::up(&[service.clone(), Service::new("other")], &ConfigMap::short()).await;
    let pids = ebb.until_pods("kept", 1).await.pids("app_pid");
    let file = ebb.folder().join("kept.yaml");
    let load = ebb.load("kept");
    let traffic = tokio::spawn(async move { load.steady(100, Duration::from_secs(9)).await });
    for text in ["", "# to be written\n", "---\n"] {
        std::fs::write(&file, text).expect("the folder can be written");
        until_problem(&ebb, "kept.yaml: holds no manifest").await;
    }
    // Removed and written anew, as some tools do, it was never gone.
    std::fs::remove_file(&file).expect("it is there");
    tokio::time::sleep(Duration::from_millis(500)).await;
    ebb.rewrite(&service);
    traffic.await.expect("the load ends").assert_all_answered();
    assert_eq!(ebb.revision("kept").await.expect("ebb answers").pids("app_pid"), pids);
    std::fs::remove_file(&file).expect("it is there");
    until_revisions(&ebb, &["other"]).await;
    assert!(ebb.output().contains("removed: its pods drain"), "{}", ebb.output());
    ebb.rewrite(&service);
    until_revisions(&ebb, &["kept", "other"]).await;
    assert!(ebb.output().contains("added revision=default/service/kept"), "{}", ebb.output());
    ebb.load("kept").one().await.assert_all_answered();
}

#[tokio::test]
async fn a_deleted_service_stays_away_until_its_file_is_written() {
    let service = Service::new("unwanted").scaling("min-scale", "1");
    let ebb = Ebb::up(&[service.clone(), Service::new("other")], &ConfigMap::short()).await;
    let pids = ebb.until_pods("unwanted", 1).await.pids("app_pid");
    let (code, said, stderr) = ebb.run(&["delete", "unwanted"]).await;
    assert_eq!(code, 0, "{stderr}");
    assert!(said.contains("default/service/unwanted is removed") && said.contains("unwanted.yaml"), "{said}");
    until_revisions(&ebb, &["other"]).await;
    eventually("its processes have ended", PATIENCE, || async {
        if pids.iter().any(|&pid| is_alive(pid)) { Err(format!("{pids:?}")) } else { Ok(()) }
    })
    .await;
    // An edit of another file changes nothing about it.
    ebb.configure(&ConfigMap::short().set("container-concurrency-target-default", "40"));
    ebb.until("other", "a target of 28", |revision| revision.field("target_per_pod").as_f64() == Some(28.0))
        .await;
    until_revisions(&ebb, &["other"]).await;
    let (code, _, stderr) = ebb.run(&["delete", "unwanted"]).await;
    assert_eq!((code, stderr.contains("there is no revision")), (1, true), "{stderr}");
    ebb.rewrite(&service);
    ebb.until_pods("unwanted", 1).await;
}

#[tokio::test]
async fn a_list_of_processes_says_whose_each_is() {
    let ebb = Ebb::up(&[Service::new("named").scaling("min-scale", "1")], &ConfigMap::short()).await;
    ebb.until_pods("named", 1).await;
    let lines: Vec<String> = descendants(ebb.pid())
        .into_iter()
        .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok())
        .map(|line| line.replace('\0', " "))
        .collect();
    for process in ["ebb pod default/named-00001-0001 ", "ebb queue-proxy default/named-00001-0001 "] {
        assert!(lines.iter().any(|line| line == process), "{process:?} is not among {lines:#?}");
    }
}

/// `ebb up` takes a directory and standard input, and runs what lies beside a manifest, wherever it was
/// started.
#[tokio::test]
async fn manifests_come_from_a_directory_and_from_standard_input() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let manifests = folder.path().join("manifests");
    std::fs::create_dir(&manifests).expect("the folder can be written");
    let script = "#!/bin/sh\nexec \"$@\"\n";
    std::fs::write(manifests.join("start.sh"), script).expect("the folder can be written");
    let executable_mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(manifests.join("start.sh"), executable_mode).expect("it was written");
    let beside = Service::running("beside", &["./start.sh", &tests::ebb::test_app()]);
    std::fs::write(manifests.join("beside.yml"), beside.yaml()).expect("the folder can be written");
    std::fs::write(manifests.join("notes.md"), "not a manifest").expect("the folder can be written");
    let mut child = Command::new(executable())
        .args(["up", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "-f", "manifests", "-f", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the executable starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let piped = Service::new("piped").yaml();
    stdin.write_all(piped.as_bytes()).await.expect("it reads");
    drop(stdin);
    let stdout = child.stdout.take().expect("it is piped");
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(stdout));
    let first = lines.next_line().await.expect("it prints").expect("a line");
    let address = first.strip_prefix("requests: http://").expect("the address").parse().expect("an address");
    for service in ["beside", "piped"] {
        tests::Load::new(address, &format!("{service}.default.example.com"))
            .one()
            .await
            .assert_all_answered();
    }
    tests::ebb::signal_process(child.id().expect("it runs"), Signal::SIGTERM);
    assert!(child.wait().await.expect("a child can be waited for").success());
}

/// Waits until a process has stopped.
async fn stands_still(pid: u32) {
    eventually("it stands still", Duration::from_secs(10), || async {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.contains(") T ") { Ok(()) } else { Err(stat) }
    })
    .await;
}

/// A watcher knows a file by its length, its time and its number.
#[tokio::test]
async fn a_hangup_finds_an_edit_that_nothing_shows() {
    let service = |target: &str| Service::new("reloaded").scaling("target", target);
    let services = [service("50")];
    let ebb = Ebb::up_under(&HEARS_HANGUPS, Stdio::null(), &services, &ConfigMap::short()).await;
    let target = |expected: f64| {
        move |revision: &tests::Revision| revision.field("target_per_pod").as_f64() == Some(expected)
    };
    ebb.until("reloaded", "its target", target(35.0)).await;
    let path = ebb.folder().join("reloaded.yaml");
    let written = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).expect("it is there");
    // It stands still meanwhile, so that it never sees the file with its new time.
    ebb.signal(Signal::SIGSTOP);
    stands_still(ebb.pid()).await;
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("it is ours");
    std::io::Write::write_all(&mut &file, service("80").yaml().as_bytes()).expect("it can be written");
    file.set_modified(written).expect("it is ours");
    drop(file);
    ebb.signal(Signal::SIGCONT);
    // Some event may have had it read by now; after this it must have been.
    ebb.signal(Signal::SIGHUP);
    ebb.until("reloaded", "the new target", target(56.0)).await;
}

#[tokio::test]
async fn files_and_documents_come_and_go_in_a_directory() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let write = |name: &str, text: &str| {
        let new = folder.path().join(format!("{name}.new"));
        std::fs::write(&new, text).expect("the folder can be written");
        std::fs::rename(new, folder.path().join(name)).expect("the folder can be written");
    };
    let two = format!("{}---\n{}", Service::new("first").yaml(), Service::new("second").yaml());
    write("two.yaml", &two);
    let directory = folder.path().to_string_lossy().into_owned();
    let ebb = Ebb::up_with(&[], &ConfigMap::short(), &["-f", &directory]).await;
    until_revisions(&ebb, &["first", "second"]).await;
    write("third.yaml", &Service::new("third").yaml());
    until_revisions(&ebb, &["first", "second", "third"]).await;
    ebb.load("third").one().await.assert_all_answered();
    let removed = |count: usize| {
        let ebb = &ebb;
        let changed = tests::bench::clock::now();
        async move {
            eventually("it is said", PATIENCE, || async {
                let said = ebb.output().matches("removed: its pods drain").count();
                if said == count { Ok(()) } else { Err(ebb.output()) }
            })
            .await;
            let after = tests::bench::clock::since(changed);
            assert!(after >= Duration::from_secs(2), "it counted as gone after {after:?}");
        }
    };
    // A document, then every file.
    write("two.yaml", &Service::new("first").yaml());
    removed(1).await;
    until_revisions(&ebb, &["first", "third"]).await;
    for file in ["two.yaml", "third.yaml"] {
        std::fs::remove_file(folder.path().join(file)).expect("it is there");
    }
    removed(3).await;
    until_revisions(&ebb, &[]).await;
    let gone = ebb.load("third").one().await;
    assert_eq!(gone.refused(), 1, "{:?}", gone.outcomes);
    write("third.yaml", &Service::new("third").yaml());
    until_revisions(&ebb, &["third"]).await;
    ebb.load("third").one().await.assert_all_answered();
}
