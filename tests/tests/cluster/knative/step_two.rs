//! ebb's activators in the place of Knative's, too: contract §5, §7.2 and the second step of §7.4, and back
//! to the first one.

use std::net::SocketAddr;

use tests::cluster::{PATIENCE, ebb, text};
use tests::{Load, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::app::{KnativeApp, KnativeAppPlan, NAME, in_knative, write_setting};
use crate::gateway::Gateway;
use crate::installing::{apply, restoring_ebb_on_failure};

/// A host that a route of a user has, and no revision.
const USERS_HOST: &str = "www.example.com";
const PER_SECOND: u32 = 20;

/// The answer to `GET /` of a host with these header lines, to the end of the connection.
async fn answer(to: SocketAddr, host: &str, lines: &[&str]) -> String {
    let mut head = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for line in lines {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    let asking = async {
        let mut stream = TcpStream::connect(to).await?;
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answered = tokio::time::timeout(PATIENCE, asking).await.expect("it is answered in time");
    answered.expect("the connection holds")
}

/// As an ingress sends requests: on a connection for each, so that none outlives the activator it goes to.
async fn load(app: &KnativeApp) -> Load {
    app.load(&KnativeApp::revision(1)).await.path("/?sleep=50").one_connection_each()
}

/// Contract §5.3 and §5.4: the ingress sees its probes answered for the host of a user and for a name that a
/// user mapped, and requests of both are served.
async fn is_reached_through_the_ingress(app: &KnativeApp) {
    let (gateway, namespace) = (Gateway::find(&app.namespace).await, &app.namespace.name);
    let hosts = [app.users_host(), format!("{namespace}.example.org")];
    let [_, mapped] = &hosts;
    let service = format!("{namespace}/{NAME}");
    write_setting(&app.namespace, "stand-in-ingress", mapped, Some(&service)).await;
    gateway.has_programmed(&hosts).await;
    for host in &hosts {
        let served = answer(gateway.requests(), host, &[]).await;
        assert!(served.starts_with("HTTP/1.1 200 "), "{host}: {served}");
    }
    write_setting(&app.namespace, "stand-in-ingress", mapped, None).await;
}

/// Step 2, what has to hold there, and step 1 again.
async fn in_and_out(app: KnativeApp) {
    let (revision, load) = (KnativeApp::revision(1), load(&app).await);
    // Beside Knative's activators and beside ebb's an ingress sees the same.
    is_reached_through_the_ingress(&app).await;
    let traffic = load.in_background(PER_SECOND);
    apply("overlay-activator", &["activator"]).await;
    app.is_served_by_activators(&revision).await;
    traffic.end().await.assert_nothing_missing();
    eventually("the check knows whose programs these are", PATIENCE, || async {
        let said = text(&ebb(&app.namespace, &["check", "--knative"]).await);
        if said.contains("ok       autoscaler and activator are ebb's") { Ok(()) } else { Err(said) }
    })
    .await;
    is_named_by_the_ingress(&app, &revision).await;
    is_reached_through_the_ingress(&app).await;

    // What ebb's own activators hold wakes a revision, and its queue-proxies are Knative's still.
    app.has_count(&revision, |count| count == 0).await;
    app.is_served_by_activators(&revision).await;
    load.one().await.assert_all_answered();

    let traffic = load.in_background(PER_SECOND);
    apply("overlay", &["activator"]).await;
    app.is_served_by_activators(&revision).await;
    traffic.end().await.assert_nothing_missing();
}

/// Contract §5.2 and §5.3: the headers of an ingress name the revision, whatever the host, and its probes are
/// answered.
async fn is_named_by_the_ingress(app: &KnativeApp, revision: &str) {
    let address = app.address(revision).await;
    let namespace = format!("Knative-Serving-Namespace: {}", app.namespace.name);
    let identity = [format!("Knative-Serving-Revision: {revision}"), namespace];
    let identity = identity.each_ref().map(String::as_str);
    let named = answer(address, USERS_HOST, &identity).await;
    assert!(named.starts_with("HTTP/1.1 200 "), "{named}");
    let unnamed = answer(address, USERS_HOST, &[]).await;
    assert!(unnamed.starts_with("HTTP/1.1 404 "), "{unnamed}");
    let probe = [&identity[..], &["K-Network-Probe: probe", "K-Network-Hash: abc"][..]].concat();
    let probed = answer(address, USERS_HOST, &probe).await.to_lowercase();
    assert!(probed.starts_with("http/1.1 200 ") && probed.contains("k-network-hash: abc"), "{probed}");
}

#[test]
fn ebbs_activators_come_in_and_leave_again_under_load_and_serve_whom_an_ingress_names() {
    in_knative("knative-step-two", async |namespace| {
        let plan = KnativeAppPlan::default().scaled("target-burst-capacity", "-1");
        let app = plan.apply(&namespace).await;
        app.is_ready(1).await;
        restoring_ebb_on_failure(in_and_out(app)).await;
    });
}
