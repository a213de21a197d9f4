//! Who is who on links and hops: strangers get nothing, and certificates change under load.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use link::{ActivatorOrder, Identity, Message, PodOrder, TlsDialler};
use serde_json::json;
use tests::client::Load;
use tests::cluster::{PATIENCE, SYSTEM, TestNamespace, WorkloadPlan, in_namespace};
use tests::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vocabulary::{ActivatorWord, LinkAddress, LinkChannel, PodWord};

const LINK_PORT: u16 = 8024;

async fn identity(namespace: &TestNamespace, secret: &str) -> Identity {
    let secret = namespace.system_secret(secret).await;
    let [chain, key, roots] = ["tls.crt", "tls.key", "ca.crt"].map(|key| secret[key].as_bytes());
    Identity::from_pem(chain, key, roots).expect("it is good")
}

/// Whether a caller that shows that is told anything on a link.
async fn is_told<In: Message, Out: Message>(
    identity: &Identity,
    at: IpAddr,
    channel: LinkChannel,
    first: &Out,
) -> bool {
    let dialler = TlsDialler::new(identity).expect("it can be shown");
    let address = LinkAddress { channel, ..SocketAddr::new(at, LINK_PORT).into() };
    let Ok((mut reader, mut writer)) = link::dial_with::<In, Out>(&dialler, address).await else {
        return false;
    };
    let _ = writer.send(first).await;
    matches!(reader.next().await, Ok(Some(_)))
}

async fn pod_tells(identity: &Identity, at: IpAddr) -> bool {
    is_told::<PodWord, PodOrder>(identity, at, LinkChannel::TlsOfPod, &PodOrder::Heartbeat).await
}

async fn activator_tells(identity: &Identity, at: IpAddr) -> bool {
    is_told::<ActivatorWord, ActivatorOrder>(
        identity,
        at,
        LinkChannel::TlsOfActivator,
        &ActivatorOrder::Heartbeat,
    )
    .await
}

#[test]
fn a_caller_without_an_autoscalers_certificate_hears_nothing_on_links() {
    in_namespace("strangers", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = plan.create(&namespace).await;
        hello.has_pods(1).await;
        let pod = hello.pod_addresses().await[0];
        let (autoscaler, activator) = (
            identity(&namespace, "ebb-autoscaler-tls").await,
            identity(&namespace, "ebb-activator-tls").await,
        );
        assert!(pod_tells(&autoscaler, pod).await, "so that what follows is due to the certificate");
        assert!(!pod_tells(&activator, pod).await);
        for at in namespace.activators().await {
            assert!(activator_tells(&autoscaler, at).await);
            assert!(!activator_tells(&activator, at).await);
        }
        // Without TLS, a frame as it was before there was any.
        for at in namespace.activators().await.into_iter().chain([pod]) {
            let mut stream = TcpStream::connect((at, LINK_PORT)).await.expect("it listens");
            stream.write_all(&[0, 0, 0, 2, 0x12, 0]).await.expect("it is sent");
            let mut answer = Vec::new();
            let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
            assert!(ended.is_ok(), "the connection is closed");
            // An alert of TLS at most.
            assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
        }
        hello.load().one().await.assert_all_answered();
    });
}

#[test]
fn a_caller_that_claims_to_be_an_activator_is_taken_for_a_client() {
    in_namespace("spoofed", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = plan.create(&namespace).await;
        hello.has_pods(1).await;
        let pod = hello.pod_addresses().await[0];
        let [port] = hello.activator_ports().await[..] else { panic!("it has one port") };
        let hop = SocketAddr::new(pod, 8012);
        let doors = namespace.activators().await.into_iter().map(|at| SocketAddr::new(at, port));
        for target in doors.chain([hop, hello.address]) {
            let mut stream = TcpStream::connect(target).await.expect("it listens");
            // With a key this were a probe, which the queue-proxy would answer itself.
            let request = "GET / HTTP/1.1\r\nhost: hello\r\nebb-hop-key: 00112233\r\nK-Network-Probe: queue\r\nK-Proxy-Request: activator\r\nconnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).await.expect("it is sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("it is answered");
            assert!(
                answer.starts_with("HTTP/1.1 200") && answer.contains("x-port: 8080"),
                "{target}: {answer}"
            );
        }
    });
}

/// It is linked to at its own address, and says on that link to be another owner's pod.
#[test]
fn a_pod_that_claims_to_be_another_is_not_heard_for_it() {
    in_namespace("claims", async |namespace| {
        let plan = WorkloadPlan::new("victim").annotated("autoscaling.knative.dev/min-scale", "1");
        let victim = plan.annotated("autoscaling.knative.dev/target", "1").create(&namespace).await;
        victim.has_pods(1).await;
        let claimed = format!("{}/{}", namespace.name, victim.pod_names().await[0]);
        let plan = WorkloadPlan::new("liar").annotated("autoscaling.knative.dev/min-scale", "1");
        let liar = plan.sidecar_variable("SERVING_POD", &claimed).create(&namespace).await;
        liar.has_pods(1).await;
        // Past the Service: this is load of the liar's, whatever becomes of it.
        let door = SocketAddr::new(liar.pod_addresses().await[0], 8012);
        let load = Load::new(door, "liar").path("/?sleep=200").closed_loop(20, Duration::from_secs(10)).await;
        assert!(load.answered() > 0, "{:?}", load.outcomes);
        assert_eq!(victim.count().await, 1, "20 at once would be many pods");
        victim.load().one().await.assert_all_answered();
    });
}

/// Two who share a cluster: neither an annotation, a port nor a name leads to the other's pods.
#[test]
fn pods_of_another_namespace_are_never_reached() {
    in_namespace("mine", async |mine| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = plan.create(&mine).await;
        hello.has_pods(1).await;
        let [pod] = hello.pod_names().await.try_into().expect("it has one pod");
        mine.beside("theirs", async |theirs| {
            // Services there that name the workload here, in each way that might mean it.
            let mut services = Vec::new();
            for (name, target) in [
                ("plain", "deployment/hello".to_owned()),
                ("path", format!("deployment/{}/hello", mine.name)),
                ("id", format!("{}/deployment/hello", mine.name)),
            ] {
                services.push(WorkloadPlan::new(name).create_service_naming(&theirs, &target).await);
            }
            // Who made this one known has seen those.
            let own = WorkloadPlan::new("own").create(&theirs).await;
            let [port] = own.activator_ports().await[..] else { panic!("it has one port") };
            own.takes_connections().await;
            own.load().one().await.assert_all_answered();
            for service in services {
                let outcome = tokio::time::timeout(Duration::from_secs(5), service.load().one()).await;
                assert!(outcome.is_err() || outcome.is_ok_and(|tally| tally.answered() == 0));
                assert_eq!(service.served_by().await, Vec::<String>::new());
            }
            // By name, at their own Service and their own port of the activators.
            let host = format!("hello.{}.svc.cluster.local", mine.name);
            let doors = theirs.activators().await.into_iter().map(|at| SocketAddr::new(at, port));
            for target in doors.chain([own.address]) {
                let answer = raw_get(target, &host).await;
                assert!(!answer.contains(&pod), "{target}: {answer}");
                assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("own-"), "{target}: {answer}");
            }
            // A request that says which pod it is for is no other pod's, wherever it arrives.
            let door = SocketAddr::new(hello.pod_addresses().await[0], 8012);
            let answer = raw_get(door, &format!("h\r\nebb-pod: {}/own-1", theirs.name)).await;
            assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("ebb-not-started: 1"), "{answer}");
        })
        .await;
        hello.load().one().await.assert_all_answered();
    });
}

async fn raw_get(target: SocketAddr, host: &str) -> String {
    let mut stream = TcpStream::connect(target).await.expect("it listens");
    let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it is answered");
    answer
}

#[test]
fn certificates_and_their_authority_are_replaced_under_load() {
    in_namespace("renewed", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_pods(0).await;
        let load = hello.load();
        let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(60)).await });
        hello.has_pods(1).await;
        let secrets: Api<Secret> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let before = namespace.system_secret("ebb-activator-tls").await;
        secrets.delete("ebb-activator-tls", &DeleteParams::default()).await.expect("it is deleted");
        eventually("another certificate is made", PATIENCE, || async {
            match secrets.get_opt("ebb-activator-tls").await.expect("Secrets can be read") {
                Some(_) => Ok(()),
                None => Err("none yet".to_owned()),
            }
        })
        .await;
        assert_ne!(namespace.system_secret("ebb-activator-tls").await["tls.crt"], before["tls.crt"]);

        let former = namespace.system_secret("ebb-ca").await;
        let asked = Patch::Merge(json!({"metadata": {"annotations": {"ebb.dev/rotate": "now"}}}));
        secrets.patch("ebb-ca", &PatchParams::default(), &asked).await.expect("it is asked for");
        eventually("another authority is there, and what autoscalers show is its", PATIENCE, || async {
            let (authority, own) = (
                namespace.system_secret("ebb-ca").await,
                namespace.system_secret("ebb-autoscaler-tls").await,
            );
            let is_another = authority["tls.crt"] != former["tls.crt"];
            // Its own certificate, and the bridge from the former authority.
            let is_shown = own["tls.crt"].matches("BEGIN CERTIFICATE").count() == 2;
            if is_another && is_shown { Ok(()) } else { Err(format!("{is_another} {is_shown}")) }
        })
        .await;
        assert!(namespace.link_ca().await.contains(&former["tls.crt"]), "both are known for a time");
        // Every link is dialled anew, to a pod that knows the former authority alone, by the next owner.
        let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let autoscalers = ListParams::default().labels("app.kubernetes.io/component=autoscaler");
        for pod in pods.list(&autoscalers).await.expect("pods can be listed").items {
            let name = pod.metadata.name.expect("it has a name");
            pods.delete(&name, &DeleteParams::default()).await.expect("an autoscaler is deleted");
        }
        let tally = traffic.await.expect("the client does not panic");
        tally.assert_nothing_missing();
        // Only an owner that hears of its load takes it away, and wakes it again.
        hello.has_pods(0).await;
        hello.load().one().await.assert_all_answered();
    });
}
