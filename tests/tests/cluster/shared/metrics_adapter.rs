//! Serves the three metrics APIs, as an aggregated API server: the API server hands on to it whatever is
//! asked for below their groups, and a test says what is answered.
//!
//! It speaks TLS with a certificate that its `APIService`s name. The Service that they lead to is only a name
//! for where this process listens, which is in the control plane's own network.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tests::cluster::{PATIENCE, TestNamespace};
use tests::eventually;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// Where the control plane of `tests/cluster/up` is, and so this process, as the API server reaches it.
const HOST: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 1);
const SERVICE: &str = "adapter";
/// Group, version, and the kind of what is listed.
const APIS: [(&str, &str, &str, &str); 4] = [
    ("metrics.k8s.io", "v1beta1", "pods", "PodMetrics"),
    ("custom.metrics.k8s.io", "v1beta2", "pods/packets", "MetricValueList"),
    ("custom.metrics.k8s.io", "v1beta1", "pods/packets", "MetricValueList"),
    ("external.metrics.k8s.io", "v1beta1", "jobs", "ExternalMetricValueList"),
];

/// What is answered to a path with its query; `None` if it is unknown.
pub(crate) type Answering = Arc<dyn Fn(String) -> BoxFuture<'static, Option<Answer>> + Send + Sync>;

/// One answer of a metrics API.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn found(body: &Value) -> Self {
        Self { status: 200, body: body.to_string() }
    }

    pub(crate) fn not_found(words: &str) -> Self {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
            "message": words, "metadata": {}});
        Self { status: 404, body: status.to_string() }
    }
}

/// The adapter, as long as it serves.
pub(crate) struct Adapter {
    registrations: Api<DynamicObject>,
    serving: JoinHandle<()>,
}

impl Adapter {
    /// Listens, and makes itself known to the API server.
    pub(crate) async fn start(namespace: &TestNamespace, answering: Answering) -> Self {
        let host = format!("{SERVICE}.{}.svc", namespace.name);
        let key = KeyPair::generate().expect("a key");
        let certificate =
            CertificateParams::new([host]).expect("a name").self_signed(&key).expect("a certificate");
        let acceptor = acceptor(&certificate.pem(), &key.serialize_pem());
        let listener = TcpListener::bind(SocketAddr::from((HOST, 0))).await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let router = Router::new().fallback(answer).with_state(answering);
        let serving = tokio::spawn(serve(listener, acceptor, router));
        let registrations = register(namespace, port, &certificate.pem()).await;
        Self { registrations, serving }
    }

    /// No process serves these APIs any more.
    pub(crate) async fn stop(self) {
        for (group, version, _, _) in APIS {
            let name = format!("{version}.{group}");
            self.registrations.delete(&name, &DeleteParams::default()).await.expect("it was registered");
        }
        self.serving.abort();
    }
}

fn acceptor(certificate: &str, key: &str) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let config =
        builder.expect("safe versions").with_no_client_auth().with_single_cert(vec![certificate], key);
    TlsAcceptor::from(Arc::new(config.expect("they belong together")))
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, router: Router) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = TowerToHyperService::new(router);
            // A connection that breaks is dialled anew.
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn register(namespace: &TestNamespace, port: u16, certificate: &str) -> Api<DynamicObject> {
    // An address is a name too.
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE},
        "spec": {"type": "ExternalName", "externalName": HOST.to_string()},
    });
    let services = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Service"), "services");
    let services: Api<DynamicObject> =
        Api::namespaced_with(namespace.client.clone(), &namespace.name, &services);
    create(&services, service).await;
    let kind = GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
    let resource = ApiResource::from_gvk_with_plural(&kind, "apiservices");
    let api: Api<DynamicObject> = Api::all_with(namespace.client.clone(), &resource);
    // Bytes, as they stand in JSON.
    let bundle = json!(k8s_openapi::ByteString(certificate.as_bytes().to_vec()));
    for (group, version, _, _) in APIS {
        // One that an earlier run left behind leads nowhere.
        let name = format!("{version}.{group}");
        let _ = api.delete(&name, &DeleteParams::default()).await;
        let priority = if version == "v1beta2" { 200 } else { 100 };
        let registration = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
            "spec": {
                "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": priority,
                "service": {"name": SERVICE, "namespace": namespace.name, "port": port}, "caBundle": bundle,
            },
        });
        create(&api, registration).await;
        eventually(&format!("{name} is available"), PATIENCE, || async {
            let registered = api.get(&name).await.map_err(|error| error.to_string())?;
            let conditions = registered.data["status"]["conditions"].clone();
            let is_available = conditions
                .as_array()
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == "Available" && condition["status"] == "True");
            if is_available { Ok(()) } else { Err(conditions.to_string()) }
        })
        .await;
    }
    api
}

/// Whatever the API server hands on.
async fn answer(State(answering): State<Answering>, uri: Uri) -> Response {
    if let Some(page) = discovery(uri.path()) {
        return json_response(StatusCode::OK, page.to_string());
    }
    let asked = uri.to_string();
    // On a task of its own, so that an answer is never left half way because a caller went away.
    let answered = tokio::spawn(answering(asked.clone())).await.expect("who answers does not panic");
    let answered = answered.unwrap_or_else(|| Answer::not_found(&format!("nobody answers {asked}")));
    json_response(StatusCode::from_u16(answered.status).expect("a status"), answered.body)
}

fn json_response(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// What there is below a version of a group.
fn discovery(path: &str) -> Option<Value> {
    let (group, version, resource, kind) =
        APIS.into_iter().find(|(group, version, _, _)| path == format!("/apis/{group}/{version}"))?;
    let resource = json!({"name": resource, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get", "list"]});
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/{version}"), "resources": [resource]}),
    )
}

/// Creates an object of a kind that is known by name only.
pub(crate) async fn create(api: &Api<DynamicObject>, object: Value) -> DynamicObject {
    let shown = object.to_string();
    let object = serde_json::from_value(object).expect("an object");
    let made = api.create(&PostParams::default(), &object).await;
    made.unwrap_or_else(|error| panic!("{error}: {shown}"))
}
