//! Certificates and their authority change while programs run: what is new is shown, links that stand go on,
//! and the API server finds the webhook all the time.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tests::client::whole_answer;
use tests::cluster::{PATIENCE, SYSTEM, TestNamespace, WorkloadPlan, ebb, in_namespace, text};
use tests::eventually;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use vocabulary::LinkRole;

/// An autoscaler looks at them once a minute, kubelet changes files within another and a half, and programs
/// read those every few seconds.
const SHOWN_WITHIN: Duration = Duration::from_secs(200);
/// Injectors look at their registration every 10 s.
const MENDED_WITHIN: Duration = Duration::from_secs(20);
const METRICS_PORT: u16 = 9091;
/// The name of both webhook configurations in the cluster.
const WEBHOOK: &str = "ebb-injector";

/// A program that shows a certificate to each caller.
struct ShowingProgram {
    component: &'static str,
    port: u16,
    secret: &'static str,
    /// The name that stands in the certificate.
    name: String,
}

fn showing_programs() -> [ShowingProgram; 2] {
    [
        ShowingProgram {
            component: "activator",
            port: 8024,
            secret: "ebb-activator-tls",
            name: LinkRole::Activator.name().to_owned(),
        },
        ShowingProgram {
            component: "injector",
            port: 8443,
            secret: "ebb-injector-tls",
            name: format!("injector.{SYSTEM}.svc"),
        },
    ]
}

impl ShowingProgram {
    async fn addresses(&self, namespace: &TestNamespace) -> Vec<IpAddr> {
        let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let selected =
            ListParams::default().labels(&format!("app.kubernetes.io/component={}", self.component));
        let pods = pods.list(&selected).await.expect("pods can be listed").items;
        pods.into_iter().filter_map(|pod| pod.status?.pod_ip?.parse().ok()).collect()
    }

    /// What it shows at an address, which leads to these roots.
    async fn shown(&self, at: IpAddr, roots: &str) -> Result<CertificateDer<'static>, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut known = RootCertStore::empty();
        known.add_parsable_certificates(certificates(roots));
        let config = builder.expect("safe versions").with_root_certificates(known).with_no_client_auth();
        let name = ServerName::try_from(self.name.clone()).expect("it is a name");
        let stream = TcpStream::connect(SocketAddr::new(at, self.port)).await;
        let stream = stream.map_err(|error| error.to_string())?;
        // A caller that wants to see a certificate of ours ends this, but only after it has shown its own.
        let agreed = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let agreed = agreed.map_err(|error| error.to_string())?;
        let chain = agreed.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        Ok(chain.expect("a server shows one").clone().into_owned())
    }

    /// Waits until it shows what its Secret holds, wherever it runs, and that is another than this.
    async fn shows_another_than(&self, namespace: &TestNamespace, former: &CertificateDer<'_>) {
        let what = format!("each {} shows its new certificate", self.component);
        eventually(&what, SHOWN_WITHIN, || async {
            let present = self.in_secret(namespace).await.ok_or("its Secret is not there")?;
            if present == *former {
                return Err("the Secret holds the former one".to_owned());
            }
            let roots = namespace.link_ca().await;
            let places = self.addresses(namespace).await;
            for place in &places {
                if self.shown(*place, &roots).await? != present {
                    return Err(format!("another one at {place}"));
                }
            }
            if places.len() == 2 { Ok(()) } else { Err(format!("{places:?}")) }
        })
        .await;
    }

    async fn in_secret(&self, namespace: &TestNamespace) -> Option<CertificateDer<'static>> {
        let secrets: Api<Secret> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let secret = secrets.get_opt(self.secret).await.expect("Secrets can be read")?;
        let chain = String::from_utf8(secret.data?.remove("tls.crt")?.0).expect("it is text");
        certificates(&chain).into_iter().next()
    }
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    read.expect("they are certificates")
}

/// How many links to activators have broken, as the autoscaler that decides says.
async fn lost_links_to_activators(namespace: &TestNamespace) -> f64 {
    let owner = namespace.owner().await.expect("somebody decides");
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let status = pods.get(&owner.name).await.expect("it is there").status;
    let address = status.and_then(|status| status.pod_ip?.parse().ok()).expect("it has an address");
    let page = whole_answer(SocketAddr::new(address, METRICS_PORT), "localhost", "/metrics").await;
    let page = page.expect("it is answered");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let counted =
        page.lines().find_map(|line| line.strip_prefix("autoscaler_links_lost_total{peer=\"activator\"} "));
    counted.map_or(0.0, |count| count.trim().parse().expect("it is a number"))
}

#[test]
fn renewed_certificates_are_shown_and_no_link_that_stands_is_lost() {
    in_namespace("shown", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = plan.create(&namespace).await;
        hello.has_pods(1).await;
        let owner = namespace.settled_owner().await;
        hello.is_served_through_activators().await;
        let lost = lost_links_to_activators(&namespace).await;
        let traffic = hello.load().in_background(10);
        let programs = showing_programs();
        let mut former = Vec::new();
        for program in &programs {
            former.push(program.in_secret(&namespace).await.expect("it has one"));
        }
        let secrets: Api<Secret> = Api::namespaced(namespace.client.clone(), SYSTEM);
        // What autoscalers show, too.
        for name in programs.iter().map(|program| program.secret).chain(["ebb-autoscaler-tls"]) {
            secrets.delete(name, &DeleteParams::default()).await.expect("it is deleted");
        }
        for (program, former) in programs.iter().zip(&former) {
            program.shows_another_than(&namespace, former).await;
        }
        namespace.system_secret("ebb-autoscaler-tls").await;
        assert_eq!(namespace.owner().await.as_ref(), Some(&owner), "so it is the same count");
        let lost_since = lost_links_to_activators(&namespace).await - lost;
        assert!(lost_since.abs() < 0.5, "{lost_since} links were lost");
        traffic.end().await.assert_nothing_missing();
    });
}

/// By what the API server knows the webhook, in each of its configurations.
async fn bundles(namespace: &TestNamespace) -> Vec<Vec<u8>> {
    let client = || namespace.client.clone();
    let mutating = Api::<MutatingWebhookConfiguration>::all(client()).get(WEBHOOK).await;
    let validating = Api::<ValidatingWebhookConfiguration>::all(client()).get(WEBHOOK).await;
    let mutating = mutating.expect("it is there").webhooks.into_iter().flatten();
    let validating = validating.expect("it is there").webhooks.into_iter().flatten();
    let bundles = mutating.map(|hook| hook.client_config).chain(validating.map(|hook| hook.client_config));
    bundles.map(|config| config.ca_bundle.unwrap_or_default().0).collect()
}

/// Waits until the API server knows the webhook by what the injectors were given.
async fn webhook_is_known(namespace: &TestNamespace, limit: Duration) {
    eventually("the webhook is known by its authority", limit, || async {
        let roots = namespace.system_secret("ebb-injector-tls").await.remove("ca.crt").unwrap_or_default();
        let known = bundles(namespace).await;
        let is_so = known.len() > 1 && known.iter().all(|bundle| bundle == roots.as_bytes());
        if is_so { Ok(()) } else { Err(format!("{} bundles, one of them another", known.len())) }
    })
    .await;
}

/// Writes another bundle into every webhook of both configurations.
async fn damage_bundles(namespace: &TestNamespace) {
    let key = KeyPair::generate().expect("a key");
    let strangers = CertificateParams::default().self_signed(&key).expect("a certificate").pem();
    let bundle = json!(ByteString(strangers.into_bytes()));
    let damage = |count: usize| {
        let replace = |number: usize| json!({"op": "add", "path": format!("/webhooks/{number}/clientConfig/caBundle"), "value": bundle});
        let patch: Vec<Value> = (0..count).map(replace).collect();
        Patch::Json::<()>(serde_json::from_value(json!(patch)).expect("a patch"))
    };
    let parameters = PatchParams::default();
    let mutating = Api::<MutatingWebhookConfiguration>::all(namespace.client.clone());
    let count = mutating.get(WEBHOOK).await.expect("it is there").webhooks.map_or(0, |hooks| hooks.len());
    mutating.patch(WEBHOOK, &parameters, &damage(count)).await.expect("a person may write it");
    let validating = Api::<ValidatingWebhookConfiguration>::all(namespace.client.clone());
    let count = validating.get(WEBHOOK).await.expect("it is there").webhooks.map_or(0, |hooks| hooks.len());
    validating.patch(WEBHOOK, &parameters, &damage(count)).await.expect("a person may write it");
}

/// Pods are made through it, and serve.
async fn webhook_works(namespace: &TestNamespace, name: &str) {
    let app = WorkloadPlan::new(name).through_webhook().create(namespace).await;
    app.has_pods(0).await;
    app.load().one().await.assert_all_answered();
}

#[test]
fn the_webhook_works_after_its_authority_was_replaced_and_a_damaged_bundle_is_mended() {
    in_namespace("bundle", async |namespace| {
        let [_, injector] = showing_programs();
        let former = injector.in_secret(&namespace).await.expect("it has one");
        let authority = namespace.system_secret("ebb-ca").await;
        let secrets: Api<Secret> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let asked = Patch::Merge(json!({"metadata": {"annotations": {"ebb.dev/rotate": "now"}}}));
        secrets.patch("ebb-ca", &PatchParams::default(), &asked).await.expect("it is asked for");
        injector.shows_another_than(&namespace, &former).await;
        let present = namespace.system_secret("ebb-ca").await;
        assert_ne!(present["tls.crt"], authority["tls.crt"], "it is the new authority's");
        webhook_is_known(&namespace, PATIENCE).await;
        webhook_works(&namespace, "after").await;

        damage_bundles(&namespace).await;
        webhook_is_known(&namespace, MENDED_WITHIN).await;
        webhook_works(&namespace, "mended").await;
    });
}

/// Whether `ebb check` ends well, and what it says of revoked authorities.
async fn revoked(namespace: &TestNamespace) -> (bool, String) {
    let output = ebb(namespace, &["check"]).await;
    let said = text(&output);
    let mut lines = said.lines().skip_while(|line| !line.contains("no pod goes by a revoked authority"));
    let told = lines.by_ref().take(2).collect::<Vec<_>>().join("\n");
    (output.status.success(), told)
}

#[test]
fn a_revoked_authority_is_known_to_no_new_pod_and_check_names_the_others_until_they_are_replaced() {
    in_namespace("revoked", async |namespace| {
        let plan = WorkloadPlan::new("hello").through_webhook();
        let hello = plan.annotated("autoscaling.knative.dev/min-scale", "1").create(&namespace).await;
        hello.has_pods(1).await;
        let [_, injector] = showing_programs();
        let former = injector.in_secret(&namespace).await.expect("it has one");
        let authority = namespace.system_secret("ebb-ca").await["tls.crt"].clone();
        let traffic = hello.load().in_background(10);
        let secrets: Api<Secret> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let asked = Patch::Merge(json!({"metadata": {"annotations": {"ebb.dev/rotate": "revoke"}}}));
        secrets.patch("ebb-ca", &PatchParams::default(), &asked).await.expect("it is asked for");
        injector.shows_another_than(&namespace, &former).await;
        for name in ["ebb-injector-tls", "ebb-activator-tls", "ebb-autoscaler-tls", "ebb-ca"] {
            let roots = namespace.system_secret(name).await["ca.crt"].clone();
            assert!(!roots.contains(authority.trim()), "{name} still has it among its roots");
        }
        let pod = format!("{}/{}", namespace.name, hello.pod_names().await[0]);
        eventually("check names the pod", PATIENCE, || async {
            let (is_well, told) = revoked(&namespace).await;
            if !is_well && told.contains("WRONG") && told.contains(&pod) { Ok(()) } else { Err(told) }
        })
        .await;
        // It is told what it must hear all the same, until it is replaced.
        webhook_is_known(&namespace, PATIENCE).await;
        hello.restart().await;
        eventually("check names nothing more", SHOWN_WITHIN, || async {
            let (_, told) = revoked(&namespace).await;
            if told.starts_with("  ok  ") { Ok(()) } else { Err(told) }
        })
        .await;
        traffic.end().await.assert_nothing_missing();
    });
}
