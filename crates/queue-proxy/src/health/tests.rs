use tokio::net::TcpSocket;
use tokio::task::LocalSet;

use super::*;
use crate::config::ReadinessJudge;

fn probes(readiness: Probe) -> AppProbes {
    let (more_readiness, judge) = (Vec::new(), ReadinessJudge::QueueProxy);
    AppProbes { readiness, more_readiness, liveness: None, startup: None, judge }
}

/// A command whose answer a test changes: it passes while the file exists.
fn file_probe(path: &std::path::Path) -> Probe {
    let command = vec!["test".to_owned(), "-e".to_owned(), path.display().to_string()];
    Probe { check: Check::Exec { command }, period: Some(Duration::from_millis(100)), ..Probe::none() }
}

async fn until(health: &Health, state: PodState) {
    while health.state() != state {
        health.newer_than(health.version()).await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn an_app_without_a_probe_is_ready_at_once() {
    let health = Health::new();
    let probes = probes(Probe::none());
    let watching = health.watch(&probes, Clock::start());
    tokio::select! {
        unhealthy = watching => panic!("{unhealthy}"),
        () = until(&health, PodState::Ready) => {}
    }
}

/// R1, R2: while no process listens the pod is starting, for as long as that takes; it is ready as soon as
/// one does.
#[tokio::test(flavor = "current_thread")]
async fn an_app_is_ready_once_its_port_answers_and_the_wait_says_why() {
    let following = async {
        // Bound and not yet listening: no other process can take the port meanwhile.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let port = socket.local_addr().expect("bound").port();
        let health = Health::new();
        let probes = probes(Probe { check: Check::Tcp { port }, ..Probe::none() });
        let rising = async {
            while health.detail().is_empty() {
                health.newer_than(health.version()).await;
            }
            assert_eq!(health.detail(), format!("readiness probe: port {port}: connection refused"));
            assert_eq!(health.state(), PodState::Starting);
            let _listener = socket.listen(16).expect("bound");
            until(&health, PodState::Ready).await;
            assert_eq!(health.detail(), "");
        };
        tokio::select! {
            unhealthy = health.watch(&probes, Clock::start()) => panic!("{unhealthy}"),
            () = rising => {}
        }
    };
    LocalSet::new().run_until(following).await;
}

/// R3, R4: as many good answers in a row as the threshold says, whatever the period, and they are asked for
/// quickly.
#[tokio::test(flavor = "current_thread")]
async fn an_app_is_ready_after_its_success_threshold() {
    let following = async {
        let directory = tempfile::tempdir().expect("a directory");
        let asked = directory.path().join("asked");
        let command = ["sh", "-c", &format!("echo >> {}", asked.display())].map(str::to_owned).to_vec();
        let health = Health::new();
        let probes = probes(Probe {
            check: Check::Exec { command },
            period: Some(Duration::from_hours(1)),
            success_threshold: 3,
            ..Probe::none()
        });
        tokio::select! {
            unhealthy = health.watch(&probes, Clock::start()) => panic!("{unhealthy}"),
            () = until(&health, PodState::Ready) => {}
        }
        assert_eq!(std::fs::read(&asked).expect("asked").len(), 3);
    };
    LocalSet::new().run_until(following).await;
}

/// R13: exec probes are run.
#[tokio::test(flavor = "current_thread")]
async fn an_app_that_stops_passing_is_unready_and_may_come_back() {
    let following = async {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ready");
        std::fs::write(&path, "").expect("writable");
        let health = Health::new();
        let probes = probes(file_probe(&path));
        let wavering = async {
            until(&health, PodState::Ready).await;
            std::fs::remove_file(&path).expect("there");
            until(&health, PodState::Unready).await;
            assert!(health.detail().contains("exit status: 1"), "{}", health.detail());
            std::fs::write(&path, "").expect("writable");
            until(&health, PodState::Ready).await;
            health.set_draining();
            std::fs::remove_file(&path).expect("there");
        };
        tokio::select! {
            unhealthy = health.watch(&probes, Clock::start()) => panic!("{unhealthy}"),
            () = wavering => {}
        }
        health.set(PodState::Ready, String::new());
        assert_eq!(health.state(), PodState::Draining, "leaving is final");
    };
    LocalSet::new().run_until(following).await;
}

/// R14: Knative's probes of several containers.
#[tokio::test(flavor = "current_thread")]
async fn a_pod_of_several_probes_is_ready_while_each_of_them_passes() {
    let following = async {
        let directory = tempfile::tempdir().expect("a directory");
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        std::fs::write(&first, "").expect("writable");
        let health = Health::new();
        let more_readiness = vec![Probe { failure_threshold: 1, ..file_probe(&second) }];
        let probes = AppProbes { more_readiness, ..probes(file_probe(&first)) };
        let wavering = async {
            while !health.detail().starts_with("readiness probe") {
                health.newer_than(health.version()).await;
            }
            assert_eq!(health.state(), PodState::Starting, "one passes");
            std::fs::write(&second, "").expect("writable");
            until(&health, PodState::Ready).await;
            std::fs::remove_file(&second).expect("there");
            until(&health, PodState::Unready).await;
            std::fs::write(&second, "").expect("writable");
            until(&health, PodState::Ready).await;
        };
        tokio::select! {
            unhealthy = health.watch(&probes, Clock::start()) => panic!("{unhealthy}"),
            () = wavering => {}
        }
    };
    LocalSet::new().run_until(following).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_failing_liveness_probe_is_the_end_and_so_is_a_start_that_takes_too_long() {
    let following = async {
        let nowhere = std::path::Path::new("/nowhere/at/all");
        let failing = Probe { failure_threshold: 2, ..file_probe(nowhere) };
        let liveness = AppProbes { liveness: Some(failing.clone()), ..probes(Probe::none()) };
        let unhealthy = Health::new().watch(&liveness, Clock::start()).await;
        assert!(matches!(unhealthy, AppFailure::Liveness { failures: 2, .. }), "{unhealthy}");
        let startup = AppProbes { startup: Some(failing), ..probes(Probe::none()) };
        let health = Health::new();
        let unhealthy = health.watch(&startup, Clock::start()).await;
        assert!(matches!(unhealthy, AppFailure::Startup { .. }), "{unhealthy}");
        assert_eq!(health.state(), PodState::Starting, "readiness waits for the start");
    };
    LocalSet::new().run_until(following).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_about_a_starting_app_is_answered_as_soon_as_it_is_ready() {
    let (clock, at_most) = (Clock::start(), Duration::from_millis(800));
    let began = clock.now();
    let health = Health::new();
    let gets_ready = async {
        clock.sleep_until(began + Duration::from_millis(300)).await;
        health.set(PodState::Starting, "readiness probe: refused".to_owned());
        clock.sleep_until(began + Duration::from_millis(500)).await;
        health.set(PodState::Ready, String::new());
    };
    let heard = async {
        health.started(at_most, clock).await;
        clock.now()
    };
    let ((), heard) = tokio::join!(gets_ready, heard);
    assert_eq!(heard, began + Duration::from_millis(500));
    // From then on no probe waits, whatever becomes of it.
    health.set(PodState::Unready, "readiness probe: 500".to_owned());
    health.started(at_most, clock).await;
    health.set_draining();
    health.started(at_most, clock).await;
    assert_eq!(clock.now(), heard);
    let never = Health::new();
    never.started(at_most, clock).await;
    assert_eq!((clock.now(), never.state()), (heard + at_most, PodState::Starting));
}
