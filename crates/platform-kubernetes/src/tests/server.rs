//! An API server as kube's client sees it on the wire: it keeps objects, lists, watches and writes them, and
//! fails as a test tells it to. A real one does not fail on demand.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use runtime::Clock;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use vocabulary::Timestamp;

/// How the server fails a request on demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// With this status; the body is a `Status` that says `because`.
    Status(u16),
    /// 429 from a server that looks at no request: seconds in the header, and a line of text.
    TurnedAway { seconds: u32 },
    /// The request is read, and never answered.
    Silence,
    /// A head, and nothing after it.
    HangsAfterHead,
    /// The request is carried out, and the connection cut in the middle of the answer.
    CutInAnswer,
    /// The request is carried out and answered once its path is healed; so long a watch shows nothing new.
    Late,
}

impl Fault {
    /// How many attempts fail before a test heals the server. One that hangs takes 4 s, and the wait behind
    /// it grows as behind every other failure.
    pub(super) fn failures_before_recovery(&self) -> usize {
        if matches!(self, Self::Silence | Self::HangsAfterHead) { 1 } else { 3 }
    }
}

/// The message of every refusal that a test asked for.
pub(super) const BECAUSE: &str = "because the test wants it";

/// How the server ends a watch on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchEnd {
    /// As it does after some minutes.
    Clean,
    /// The connection is cut after half of an object.
    MidObject,
    /// What it asks for is not kept any more, and the stream says so.
    GoneInStream,
    /// The connection is cut, and the next one is answered 410.
    GoneAsStatus,
}

type ObjectPath = (String, String, String);

#[derive(Default)]
struct ServerState {
    version: u64,
    objects: BTreeMap<ObjectPath, Value>,
    /// What happened to objects of which collection, in which version.
    history: Vec<(u64, String, Value)>,
    /// Changes before it are not kept any more.
    kept_since: u64,
    faults: BTreeMap<String, Fault>,
    asked: Vec<(String, String, Timestamp)>,
    /// Whether a client that asks for its rights has them.
    is_everything_allowed: bool,
    ends: BTreeMap<String, (u64, WatchEnd)>,
    /// What it says of its version instead of 37.
    minor: Option<String>,
    /// What discovery answers at which path.
    discovered: BTreeMap<String, Value>,
}

#[derive(Clone)]
pub(super) struct ScriptedServer {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<ServerState>>,
    changed: watch::Sender<()>,
    clock: Clock,
}

struct WireRequest {
    method: String,
    path: String,
    query: String,
    body: Value,
}

/// The collection and the object that a request's path names.
struct Place {
    collection: String,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
}

impl Place {
    fn of(path: &str) -> Self {
        let mut parts = path.trim_matches('/').split('/');
        let length = if path.starts_with("/apis/") { 3 } else { 2 };
        let mut collection: Vec<&str> = parts.by_ref().take(length).collect();
        let mut parts = parts.peekable();
        let namespace = parts.next_if_eq(&"namespaces").and_then(|_| parts.next()).map(str::to_owned);
        collection.extend(parts.next());
        let [name, subresource] = [parts.next(), parts.next()].map(|part| part.map(str::to_owned));
        Self { collection: collection.join("/"), namespace, name, subresource }
    }

    fn object(&self, name: &str) -> ObjectPath {
        (self.collection.clone(), self.namespace.clone().unwrap_or_default(), name.to_owned())
    }
}

impl ScriptedServer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server =
            Self { address, state: Arc::default(), changed: watch::Sender::new(()), clock: Clock::start() };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = serving.clone();
                // How a connection ends is the client's affair.
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        server
    }

    /// Makes an object, or writes it anew.
    pub(super) fn put(&self, collection: &str, object: Value) {
        self.state.lock().put(collection, object);
        self.changed.send_replace(());
    }

    /// The same, or an end, that no watch is told of: only a new list shows it.
    pub(super) fn change_unseen(&self, collection: &str, object: Value) {
        let mut state = self.state.lock();
        state.put(collection, object);
        state.history.pop();
        state.kept_since = state.version;
    }

    pub(super) fn remove_unseen(&self, collection: &str, namespace: &str, name: &str) {
        let mut state = self.state.lock();
        state.version += 1;
        state.kept_since = state.version;
        let path = (collection.to_owned(), namespace.to_owned(), name.to_owned());
        state.objects.remove(&path).expect("it was there");
    }

    pub(super) fn remove(&self, collection: &str, namespace: &str, name: &str) {
        let path = (collection.to_owned(), namespace.to_owned(), name.to_owned());
        let mut state = self.state.lock();
        let object = state.objects.remove(&path).expect("it was there");
        state.note(collection, "DELETED", object);
        drop(state);
        self.changed.send_replace(());
    }

    pub(super) fn object(&self, collection: &str, namespace: &str, name: &str) -> Option<Value> {
        let path = (collection.to_owned(), namespace.to_owned(), name.to_owned());
        self.state.lock().objects.get(&path).cloned()
    }

    pub(super) fn objects(&self, collection: &str) -> Vec<Value> {
        let state = self.state.lock();
        let ours = state.objects.iter().filter(|((of, ..), _)| of == collection);
        ours.map(|(_, object)| object.clone()).collect()
    }

    /// Requests to this path fail like this from now on; those of one method alone, where that stands before
    /// it (`PATCH /apis/…`).
    pub(super) fn fail(&self, path: &str, fault: Fault) {
        self.state.lock().faults.insert(path.to_owned(), fault);
    }

    pub(super) fn heal(&self, path: &str) {
        self.state.lock().faults.remove(path).expect("it failed");
        self.changed.send_replace(());
    }

    /// It is of this version from now on.
    pub(super) fn be_of_version(&self, minor: &str) {
        self.state.lock().minor = Some(minor.to_owned());
    }

    /// From now on there is a kind of this group, which can be scaled.
    pub(super) fn bring_kind(&self, group: &str, version: &str, plural: &str, kind: &str) {
        let preferred = json!({"groupVersion": format!("{group}/{version}"), "version": version});
        let this = json!({"name": group, "versions": [preferred], "preferredVersion": preferred});
        let (own, scale) = (
            json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get", "list", "watch"]}),
            json!({"name": format!("{plural}/scale"), "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch"]}),
        );
        let mut state = self.state.lock();
        let none = json!({"kind": "APIGroupList", "groups": []});
        let groups = state.discovered.entry("/apis".to_owned()).or_insert(none);
        let groups = groups["groups"].as_array_mut().expect("a list");
        if !groups.contains(&this) {
            groups.push(this);
        }
        let none =
            json!({"kind": "APIResourceList", "groupVersion": format!("{group}/{version}"), "resources": []});
        let found = state.discovered.entry(format!("/apis/{group}/{version}")).or_insert(none);
        found["resources"].as_array_mut().expect("a list").extend([own, scale]);
    }

    /// A client that asks from now on whether something is allowed hears that it is.
    pub(super) fn allow_everything(&self) {
        self.state.lock().is_everything_allowed = true;
    }

    /// When this was asked for.
    pub(super) fn asked(&self, method: &str, path: &str) -> Vec<Timestamp> {
        let state = self.state.lock();
        let these = state.asked.iter().filter(|(by, at, _)| by == method && at == path);
        these.map(|(_, _, when)| *when).collect()
    }

    /// The time by the clock that says when something was [`Self::asked`].
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Ends all watches over a collection that are there.
    pub(super) fn end_watches(&self, collection: &str, end: WatchEnd) {
        let mut state = self.state.lock();
        let number = state.ends.get(collection).map_or(0, |(number, _)| *number) + 1;
        if matches!(end, WatchEnd::GoneAsStatus | WatchEnd::GoneInStream) {
            state.kept_since = state.version;
        }
        state.ends.insert(collection.to_owned(), (number, end));
        drop(state);
        self.changed.send_replace(());
    }

    async fn serve(self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        while let Some(request) = read_request(&mut stream).await? {
            let what = (request.method.clone(), request.path.clone(), self.clock.now());
            self.state.lock().asked.push(what);
            let mut changed = self.changed.subscribe();
            // The server keeps the sender, so it never ends.
            let _ = changed.wait_for(|()| self.fault_of(&request) != Some(Fault::Late)).await;
            let fault = self.fault_of(&request);
            if request.query.contains("watch=true") {
                return self.watch(&request, &mut stream).await;
            }
            let (code, body, header) = match &fault {
                None | Some(Fault::CutInAnswer) => {
                    let (code, body) = self.state.lock().answer(&request);
                    self.changed.send_replace(());
                    (code, body.to_string(), String::new())
                }
                Some(Fault::Status(code)) => (*code, status(*code, BECAUSE).to_string(), String::new()),
                Some(Fault::TurnedAway { seconds }) => {
                    let text = "Too many requests, please try again later.\n".to_owned();
                    (429, text, format!("Retry-After: {seconds}\r\n"))
                }
                Some(Fault::Silence | Fault::HangsAfterHead | Fault::Late) => {
                    (200, "{}".to_owned(), String::new())
                }
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {code} Any\r\n{header}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            match fault {
                Some(Fault::Silence) => return wait_for_end(&mut stream).await,
                Some(Fault::HangsAfterHead) => {
                    stream.write_all(head.as_bytes()).await?;
                    return wait_for_end(&mut stream).await;
                }
                Some(Fault::CutInAnswer) => {
                    stream.write_all(head.as_bytes()).await?;
                    return stream.write_all(&body.as_bytes()[..length / 2]).await;
                }
                None | Some(Fault::Status(_) | Fault::TurnedAway { .. } | Fault::Late) => {
                    stream.write_all(format!("{head}{body}").as_bytes()).await?;
                }
            }
        }
        Ok(())
    }

    fn fault_of(&self, request: &WireRequest) -> Option<Fault> {
        let state = self.state.lock();
        let of_method = state.faults.get(&format!("{} {}", request.method, request.path));
        of_method.or_else(|| state.faults.get(&request.path)).cloned()
    }

    async fn watch(self, request: &WireRequest, stream: &mut BufReader<TcpStream>) -> std::io::Result<()> {
        let Place { collection, namespace, .. } = Place::of(&request.path);
        let mut news = self.changed.subscribe();
        let mut seen =
            parameter(&request.query, "resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(0);
        let (began, is_too_old) = {
            let state = self.state.lock();
            let end = state.ends.get(&collection).copied();
            let is_refused = end.is_some_and(|(_, end)| end == WatchEnd::GoneAsStatus);
            (end.map_or(0, |(number, _)| number), is_refused && seen < state.kept_since)
        };
        if is_too_old {
            let body = status(410, "too old resource version").to_string();
            let head = format!("HTTP/1.1 410 Gone\r\nContent-Length: {}\r\n\r\n", body.len());
            return stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
        loop {
            // The server keeps the sender, so it never ends.
            let _ = news.wait_for(|()| self.fault_of(request) != Some(Fault::Late)).await;
            let (changes, end) = {
                let state = self.state.lock();
                let is_ours = |change: &&(u64, String, Value)| {
                    change.0 > seen
                        && change.1 == collection
                        && fits(&change.2["object"], namespace.as_deref(), &request.query)
                };
                let changes: Vec<Value> =
                    state.history.iter().filter(is_ours).map(|change| change.2.clone()).collect();
                seen = state.version;
                let end = state.ends.get(&collection).filter(|(number, _)| *number > began);
                (changes, end.map(|(_, end)| *end))
            };
            let last = changes.last().map(Value::to_string);
            for change in changes
                .iter()
                .take(changes.len() - usize::from(end == Some(WatchEnd::MidObject) && last.is_some()))
            {
                write_chunk(stream, &format!("{change}\n")).await?;
            }
            match end {
                None => {}
                Some(WatchEnd::Clean) => return stream.write_all(b"0\r\n\r\n").await,
                Some(WatchEnd::GoneAsStatus) => return Ok(()),
                Some(WatchEnd::MidObject) => {
                    let whole =
                        last.unwrap_or_else(|| r#"{"type":"ADDED","object":{"metadata":{}}}"#.to_owned());
                    return write_chunk(stream, &whole[..whole.len() / 2]).await;
                }
                Some(WatchEnd::GoneInStream) => {
                    let error = json!({"type": "ERROR", "object": status(410, "too old resource version")});
                    write_chunk(stream, &format!("{error}\n")).await?;
                    return stream.write_all(b"0\r\n\r\n").await;
                }
            }
            if news.changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

impl ServerState {
    fn put(&mut self, collection: &str, mut object: Value) {
        self.version += 1;
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let path = (collection.to_owned(), text("namespace"), text("name"));
        let former = self.objects.get(&path).map(|former| former["metadata"]["uid"].clone());
        let uid = object["metadata"]["uid"].as_str().map(|uid| json!(uid)).or(former.clone());
        object["metadata"]["uid"] = uid.unwrap_or_else(|| json!(format!("uid-{}", self.version)));
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path, object.clone());
        let kind = if former.is_some() { "MODIFIED" } else { "ADDED" };
        self.history.push((self.version, collection.to_owned(), json!({"type": kind, "object": object})));
    }

    fn note(&mut self, collection: &str, kind: &str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.history.push((self.version, collection.to_owned(), json!({"type": kind, "object": object})));
    }

    fn answer(&mut self, request: &WireRequest) -> (u16, Value) {
        if request.path == "/version" {
            let text = ["gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];
            let mut version: Value = text.map(|field| (field.to_owned(), json!(""))).into_iter().collect();
            let minor = self.minor.as_deref().unwrap_or("37");
            version["major"] = json!("1");
            version["minor"] = json!(minor);
            version["gitVersion"] = json!(format!("v1.{minor}.2"));
            return (200, version);
        }
        if let Some(found) = self.discovered.get(request.path.trim_end_matches('/')) {
            return (200, found.clone());
        }
        let place = Place::of(&request.path);
        if place.collection == "apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
            let mut review = request.body.clone();
            review["status"] = json!({"allowed": self.is_everything_allowed});
            return (201, review);
        }
        match (request.method.as_str(), &place.name) {
            ("GET", None) => (200, self.list(&place, &request.query)),
            ("POST", None) => self.create(&place, &request.body),
            (method, Some(name)) => self.on_object(method, &place, name, &request.body),
            (method, None) => (405, status(405, method)),
        }
    }

    fn list(&self, place: &Place, query: &str) -> Value {
        let ours = self.objects.iter().filter(|((of, ..), object)| {
            *of == place.collection && fits(object, place.namespace.as_deref(), query)
        });
        let items: Vec<&Value> = ours.map(|(_, object)| object).collect();
        json!({"metadata": {"resourceVersion": self.version.to_string()}, "items": items})
    }

    fn create(&mut self, place: &Place, body: &Value) -> (u16, Value) {
        let mut object = body.clone();
        object["metadata"]["namespace"] = json!(place.namespace);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = place.object(&name);
        if self.objects.contains_key(&path) {
            return (409, status(409, "it is there already"));
        }
        self.put(&place.collection, object);
        (201, self.objects[&path].clone())
    }

    fn on_object(&mut self, method: &str, place: &Place, name: &str, body: &Value) -> (u16, Value) {
        let path = place.object(name);
        let Some(present) = self.objects.get(&path).cloned() else {
            return (404, status(404, &format!("{name} not found")));
        };
        match (method, place.subresource.as_deref()) {
            ("GET", Some("scale")) => (200, scale(&present)),
            ("PATCH", Some("scale")) => {
                let mut scale = scale(&present);
                let operations: json_patch::Patch =
                    serde_json::from_value(body.clone()).expect("a JSON patch");
                if let Err(error) = json_patch::patch(&mut scale, &operations) {
                    return (422, status(422, &error.to_string()));
                }
                let mut object = present;
                object["spec"]["replicas"] = scale["spec"]["replicas"].clone();
                self.put(&place.collection, object);
                (200, self::scale(&self.objects[&path]))
            }
            ("PUT", None) => {
                let over = &body["metadata"]["resourceVersion"];
                if !over.is_null() && *over != present["metadata"]["resourceVersion"] {
                    return (409, status(409, "it was written meanwhile"));
                }
                let mut object = body.clone();
                object["metadata"]["namespace"] = json!(place.namespace);
                self.put(&place.collection, object);
                (200, self.objects[&path].clone())
            }
            ("PATCH", Some("status")) => {
                let over = &body["metadata"]["resourceVersion"];
                if !over.is_null() && *over != present["metadata"]["resourceVersion"] {
                    return (409, status(409, "it was written meanwhile"));
                }
                let mut object = present;
                json_patch::merge(&mut object["status"], &body["status"]);
                self.put(&place.collection, object);
                (200, self.objects[&path].clone())
            }
            ("GET", None) => (200, present),
            ("PATCH", None) => {
                let mut object = present;
                json_patch::merge(&mut object, body);
                self.put(&place.collection, object);
                (200, self.objects[&path].clone())
            }
            ("DELETE", None) => {
                let differs = |field: &str| {
                    let wanted = &body["preconditions"][field];
                    !wanted.is_null() && *wanted != present["metadata"][field]
                };
                if differs("uid") || differs("resourceVersion") {
                    return (409, status(409, "it is another one, or was written meanwhile"));
                }
                self.objects.remove(&path);
                self.note(&place.collection, "DELETED", present);
                (200, json!({"kind": "Status", "status": "Success"}))
            }
            (method, _) => (405, status(405, method)),
        }
    }
}

/// As Kubernetes writes it: a count of zero is left out.
fn scale(object: &Value) -> Value {
    let count = object["spec"]["replicas"].as_u64().unwrap_or_default();
    let spec = if count == 0 { json!({}) } else { json!({"replicas": count}) };
    // Where a kind says what it selects as text, a real one shows that here.
    let selector = object["spec"]["selector"].as_str();
    json!({"metadata": object["metadata"], "spec": spec, "status": {"replicas": count, "selector": selector}})
}

fn status(code: u16, message: &str) -> Value {
    // By which clients know what is not there from what cannot be looked at.
    let reason = if code == 404 { "NotFound" } else { "" };
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code})
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.into_iter().find(|(key, _)| *key == name)?.1;
    Some(value.replace("%3D", "=").replace("%21", "!").replace("%2C", ",").replace("%2F", "/"))
}

fn fits(object: &Value, namespace: Option<&str>, query: &str) -> bool {
    let metadata = &object["metadata"];
    if namespace.is_some_and(|namespace| metadata["namespace"] != namespace) {
        return false;
    }
    let named = parameter(query, "fieldSelector");
    if let Some(name) = named.as_deref().and_then(|text| text.strip_prefix("metadata.name="))
        && metadata["name"] != name
    {
        return false;
    }
    let labels = parameter(query, "labelSelector").unwrap_or_default();
    labels.split(',').filter(|part| !part.is_empty()).all(|part| match part.split_once('=') {
        Some((key, value)) => match key.strip_suffix('!') {
            Some(key) => metadata["labels"][key] != value,
            None => metadata["labels"][key] == value,
        },
        None => !metadata["labels"][part].is_null(),
    })
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<WireRequest>> {
    let (mut first, mut length) = (String::new(), 0);
    if stream.read_line(&mut first).await? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let mut words = first.split_whitespace().map(str::to_owned);
    let method = words.next().expect("a method");
    let target = words.next().expect("a target");
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(Some(WireRequest { method, path: path.to_owned(), query: query.to_owned(), body }))
}

async fn write_chunk(stream: &mut BufReader<TcpStream>, text: &str) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}

/// Until the client gives up.
async fn wait_for_end(stream: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    stream.read_u8().await.map(drop)
}
