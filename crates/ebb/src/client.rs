//! Asks the API of a running `ebb up`.

mod peer;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use autoscaler::api_types::ApiError;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::api_token::{ApiToken, TokenAnswer, TokenFileProblem, read_chosen_file, read_named_file};
use crate::cli::ApiOptions;
use crate::output;
use peer::ApiConnectionEnds;

/// An API that does not answer within this time is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Tells in which file an API keeps its token.
const TOKEN_PATH: &str = "/v1/token";

/// The API of an `ebb up`.
pub(crate) struct UpClient {
    url: String,
    /// The file with its token, where a person has named one.
    token_file: Option<PathBuf>,
}

impl UpClient {
    pub(crate) fn new(options: &ApiOptions) -> Self {
        Self::at(options.url.clone(), options.credentials.token_file.clone())
    }

    pub(crate) fn at(url: String, token_file: Option<PathBuf>) -> Self {
        Self { url, token_file }
    }

    /// `GET path`, read as JSON.
    pub(crate) async fn get<Answer: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Answer> {
        let body = self.ask(Method::GET, path).await?;
        self.read_json(path, &body)
    }

    /// `PUT path` with this JSON; the answer is read as JSON.
    pub(crate) async fn put<Answer: DeserializeOwned>(
        &self,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        let body = self.answer(UpQuestion { method: Method::PUT, path, body }).await?;
        self.read_json(path, &body)
    }

    /// The answer of `path`, read as JSON.
    fn read_json<Answer: DeserializeOwned>(&self, path: &str, body: &[u8]) -> anyhow::Result<Answer> {
        serde_json::from_slice(body).with_context(|| {
            format!("{}{path} answered something else than this version of ebb expects", self.url)
        })
    }

    /// One request; anything but success is an error with the text of the answer.
    pub(crate) async fn ask(&self, method: Method, path: &str) -> anyhow::Result<Bytes> {
        self.answer(UpQuestion::without_body(method, path)).await
    }

    async fn answer(&self, question: UpQuestion<'_>) -> anyhow::Result<Bytes> {
        let path = question.path;
        let answer = async {
            let body = self.open(question).await?;
            whole(body).await.with_context(|| format!("asking {}{path}", self.url))
        };
        tokio::time::timeout(PATIENCE, answer)
            .await
            .with_context(|| format!("{}{path} did not answer within {PATIENCE:?}", self.url))?
    }

    /// `GET path`, handed out line by line as it comes, however long that takes. Returns how the answer
    /// ended.
    pub(crate) async fn lines(
        &self,
        path: &str,
        mut take: impl FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<StreamEnd> {
        let mut begun = Vec::new();
        let mut body = self.open(UpQuestion::without_body(Method::GET, path)).await?;
        while let Some(frame) = body.frame().await {
            // The program at the other end has ended, or the way to it.
            let Ok(frame) = frame else { return Ok(StreamEnd::CutShort) };
            let Ok(data) = frame.into_data() else { continue };
            begun.extend_from_slice(&data);
            while let Some(end) = begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = begun.drain(..=end).collect();
                take(String::from_utf8_lossy(&line[..end]).as_ref())?;
            }
        }
        Ok(StreamEnd::Whole)
    }

    /// The address of the pages for a browser, with the token behind `#` where this user may read it.
    pub(crate) async fn dashboard_address(&self) -> anyhow::Result<String> {
        let mut connection = ApiConnection::to(&self.url).await?;
        let address = format!("http://{}/", connection.host);
        Ok(match self.token(&mut connection).await? {
            TokenSearch::Found(token) => format!("{address}#{}", token.expose()),
            TokenSearch::Nothing => address,
            TokenSearch::Unusable(why) => {
                output::print_warning(&why);
                address
            }
        })
    }

    /// The body of a successful answer.
    async fn open(&self, question: UpQuestion<'_>) -> anyhow::Result<Incoming> {
        let mut connection = ApiConnection::to(&self.url).await?;
        let (token, problem) = match self.token(&mut connection).await? {
            TokenSearch::Found(token) => (Some(token), None),
            TokenSearch::Nothing => (None, None),
            TokenSearch::Unusable(why) => (None, Some(why)),
        };
        let response = connection.send(question, token).await?;
        let is_refused = response.status() == StatusCode::UNAUTHORIZED;
        match (success(response).await, problem) {
            (Err(error), Some(problem)) if is_refused => bail!("{error:#}; {problem}"),
            (Ok(answer), Some(problem)) => {
                output::print_warning(&problem);
                Ok(answer)
            }
            (answer, _) => answer,
        }
    }

    /// The token of the API at the other end of this connection. Asked on the same connection, so that what
    /// is found is sent to the process that was looked at.
    async fn token(&self, connection: &mut ApiConnection) -> anyhow::Result<TokenSearch> {
        if let Some(file) = &self.token_file {
            return read_chosen_file(file).map(TokenSearch::Found);
        }
        let response = connection.send(UpQuestion::without_body(Method::GET, TOKEN_PATH), None).await?;
        let body = whole(response.into_body()).await?;
        // An ebb from before tokens says that there is no such page.
        let named = serde_json::from_slice::<TokenAnswer>(&body).ok().and_then(|answer| answer.token_file);
        let Some(path) = named else { return Ok(TokenSearch::Nothing) };
        let Some(user) = connection.ends.and_then(peer::user_of_peer) else {
            let advice = "the API is not on this machine: copy the file with its token, and name the copy with --token-file";
            return Ok(TokenSearch::Unusable(advice.to_owned()));
        };
        Ok(match read_named_file(&path, user) {
            Ok(token) => TokenSearch::Found(token),
            // The API says itself what to do then.
            Err(TokenFileProblem::Forbidden) => TokenSearch::Nothing,
            Err(TokenFileProblem::Unusable(why)) => TokenSearch::Unusable(why),
        })
    }
}

/// How an answer ended that was read line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// It came to its end.
    Whole,
    /// The connection ended before the answer was whole.
    CutShort,
}

/// The outcome of a search for an API's token.
enum TokenSearch {
    Found(ApiToken),
    /// There is none, or it is not for this user.
    Nothing,
    /// There is one that cannot be used, for this reason.
    Unusable(String),
}

/// One request to an API.
pub(crate) struct UpQuestion<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    /// The JSON to be sent, or nothing.
    pub(crate) body: Bytes,
}

impl<'a> UpQuestion<'a> {
    pub(crate) fn without_body(method: Method, path: &'a str) -> Self {
        Self { method, path, body: Bytes::new() }
    }
}

/// A connection to one process, for one request after another.
struct ApiConnection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    /// `None` where it is no connection of this machine's own.
    ends: Option<ApiConnectionEnds>,
}

impl ApiConnection {
    async fn to(api: &str) -> anyhow::Result<Self> {
        let url = if api.contains("://") { api.to_owned() } else { format!("http://{api}") };
        let uri: Uri = url
            .parse()
            .with_context(|| format!("{api:?} is not a URL; write something like http://127.0.0.1:9000"))?;
        if uri.scheme_str() != Some("http") {
            bail!("{api:?} does not begin with http://; write something like http://127.0.0.1:9000");
        }
        let host = uri.host().with_context(|| format!("{api:?} names no host"))?;
        let port = uri.port_u16().unwrap_or(80);
        // A URL has IPv6 addresses in brackets, which are no part of them.
        let address = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((address, port)).await.with_context(|| {
            format!("nothing answers at {api}; is `ebb up` running, or another address meant (--api)?")
        })?;
        let ends = ApiConnectionEnds { ours: stream.local_addr()?, theirs: stream.peer_addr()? };
        let connection = Self::over(stream, &format!("{host}:{port}")).await?;
        Ok(Self { ends: Some(ends), ..connection })
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        host: &str,
    ) -> anyhow::Result<Self> {
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // It ends with its last body, or with this process, whichever comes first.
        // After a panic in it there is no answer, which is an error where one is waited for.
        tokio::spawn(connection);
        Ok(Self { sender, host: host.to_owned(), ends: None })
    }

    async fn send(
        &mut self,
        question: UpQuestion<'_>,
        token: Option<ApiToken>,
    ) -> anyhow::Result<Response<Incoming>> {
        let UpQuestion { method, path, body } = question;
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.host);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        let request = request.body(Full::new(body))?;
        let asking = || format!("asking {}{path}", self.host);
        self.sender.ready().await.with_context(asking)?;
        self.sender.send_request(request).await.with_context(asking)
    }
}

/// A page that needs no token, such as a pod's metrics.
pub(crate) async fn page(address: &str, path: &str) -> anyhow::Result<Bytes> {
    let response =
        ApiConnection::to(address).await?.send(UpQuestion::without_body(Method::GET, path), None).await?;
    whole(success(response).await?).await
}

/// One request over a connection of its own; anything but success is an error with the text of the answer.
pub(crate) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    host: &str,
    question: UpQuestion<'_>,
) -> anyhow::Result<Incoming> {
    success(ApiConnection::over(stream, host).await?.send(question, None).await?).await
}

/// The body of an answer, if it is a good one.
async fn success(response: Response<Incoming>) -> anyhow::Result<Incoming> {
    let status = response.status();
    let body = response.into_body();
    if status == StatusCode::OK {
        return Ok(body);
    }
    let complaint = complaint(&whole(body).await?);
    if complaint.is_empty() {
        bail!("it answered {status}");
    }
    bail!("{complaint}")
}

/// What is wrong, in words: the API's own errors are JSON.
fn complaint(body: &[u8]) -> String {
    let said = serde_json::from_slice::<ApiError>(body).map(|said| said.error);
    said.unwrap_or_else(|_| String::from_utf8_lossy(body).trim().to_owned())
}

/// Reads a body to its end.
pub(crate) async fn whole(body: Incoming) -> anyhow::Result<Bytes> {
    Ok(body.collect().await?.to_bytes())
}
