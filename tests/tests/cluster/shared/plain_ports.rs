//! Ports of which ebb keeps out lead to pods alone, whatever they speak; and what happens to a Service that
//! has such a port beside another while the path of that one changes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tests::bench::clock;
use tests::client::{Outcome, whole_answer};
use tests::cluster::{PATIENCE, RequestPath, Workload, WorkloadPlan, in_namespace};
use tests::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const TLS_PORT: u16 = 8443;
/// A node refuses at once.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);

/// By whom the app's certificate is known, and what the app is told to have it.
fn tls_of_the_app() -> (TlsConnector, String) {
    let made = rcgen::generate_simple_self_signed(vec!["app".to_owned()]).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("it is good");
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let identity = format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem());
    (TlsConnector::from(Arc::new(client)), identity)
}

/// What the app answers over TLS, which it speaks itself.
async fn ask_over_tls(hello: &Workload, connector: &TlsConnector) -> std::io::Result<String> {
    let stream = TcpStream::connect(hello.at(443)).await?;
    let name = ServerName::try_from("app").expect("it is a name");
    let mut stream = connector.connect(name, stream).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: app\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    // The app does not say that it closes.
    match stream.read_to_string(&mut answer).await {
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(answer),
    }
}

#[test]
fn ports_of_which_ebb_keeps_out_lead_to_the_apps_own_and_wake_and_keep_no_pod() {
    in_namespace("plain-ports", async |namespace| {
        let (connector, identity) = tls_of_the_app();
        let port = TLS_PORT.to_string();
        let plan = WorkloadPlan::new("hello").app_args(&["--tls-port", &port, "--tls-identity", &identity]);
        // By what it speaks, by the template's word, and one that the template adds to those that are served.
        let plan = plan.port("tls", 443, json!(TLS_PORT)).speaking("tls", "https");
        let plan = plan.port("more", 81, json!("more")).template_annotated("ebb.dev/plain-ports", "more");
        let plan = plan.port("bare", 82, json!(7070)).template_annotated("ebb.dev/ports", "7070");
        let hello = plan.service_field("sessionAffinity", json!("ClientIP")).create(&namespace).await;
        hello.has_event("SessionAffinity").await;
        hello.has_pods(0).await;
        let before = hello.generation().await;
        // The node hears a little later than the pod is gone that no process is there.
        for port in [443, 81] {
            eventually(&format!("port {port} is refused"), PATIENCE, || async {
                // Until then it may lead to the pod that is gone, from where nothing comes back.
                let attempt = tokio::time::timeout(REFUSED_WITHIN, TcpStream::connect(hello.at(port)));
                match attempt.await {
                    Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(()),
                    Ok(Ok(_)) => panic!("nobody is there"),
                    attempt => Err(format!("{attempt:?}")),
                }
            })
            .await;
        }
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!((hello.count().await, hello.generation().await), (0, before), "nobody was woken");

        hello.load_at(82).one().await.assert_all_answered();
        let answer = eventually("the app's own TLS", PATIENCE, || async {
            ask_over_tls(&hello, &connector).await.map_err(|error| error.to_string())
        })
        .await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("x-port: 8443"), "{answer}");
        let answer = whole_answer(hello.at(81), "hello", "/").await.expect("it answers");
        assert!(answer.contains("x-port: 9090"), "{answer}");
        let only_pod = hello.pod_names().await;
        assert_eq!(
            (hello.served_at("tls").await, hello.served_at("more").await),
            (only_pod.clone(), only_pod)
        );

        // They go on, and it goes all the same.
        let traffic = hello.load_at(81).in_background(5);
        hello.has_pods(0).await;
        assert!(traffic.end().await.answered() > 0);
    });
}

#[test]
fn a_path_that_switches_to_and_fro_under_load_loses_nothing_nor_does_a_plain_port_beside_it() {
    in_namespace("switches", async |namespace| {
        let plan = WorkloadPlan::new("hello").by(RequestPath::Direct);
        let plan = plan.port("more", 81, json!("more")).template_annotated("ebb.dev/plain-ports", "more");
        let plan = plan.annotated("autoscaling.knative.dev/min-scale", "2");
        let hello = plan.annotated("ebb.dev/routing-dwell", "0s").create(&namespace).await;
        hello.has_pods(2).await;
        let mut pods = hello.pod_names().await;
        pods.sort();
        let leads_to = async |path: RequestPath| {
            eventually(&format!("it is served {path:?}"), PATIENCE, || async {
                let (serving, beside) = (hello.served_at("http").await, hello.served_at("more").await);
                assert_eq!(beside, pods, "whatever becomes of the other port");
                let is_so = match path {
                    RequestPath::Direct => serving == pods,
                    RequestPath::ThroughActivator => {
                        serving.len() == 2 && serving.iter().all(|pod| pod.starts_with("activator-"))
                    }
                };
                if is_so { Ok(()) } else { Err(format!("{serving:?}")) }
            })
            .await;
        };
        leads_to(RequestPath::Direct).await;
        hello.takes_connections_at(81).await;
        let load = hello.load().path("/?sleep=100");
        let traffic = [
            load.in_background(20),
            load.one_connection_each().in_background(20),
            hello.load_at(81).one_connection_each().in_background(20),
        ];
        let mut switches = Vec::new();
        for _ in 0..3 {
            for path in [RequestPath::ThroughActivator, RequestPath::Direct] {
                let ordered = clock::now();
                hello.goes_by(path).await;
                leads_to(path).await;
                switches.push((path, ordered, clock::now()));
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
        }
        for (traffic, what) in traffic.into_iter().zip(["kept", "one each", "plain"]) {
            let tally = traffic.end().await;
            let refused = tally.count(|outcome| *outcome == Outcome::ConnectionRefused);
            assert_eq!(refused, 0, "{what}: {:?}; switches (ordered, seen): {switches:?}", tally.unanswered);
            tally.assert_nothing_missing();
        }
    });
}
