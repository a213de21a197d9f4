//! Messages, as `http` has them, but for their fields: those are read when a caller asks for them.

use std::cell::RefCell;

use http::header::HeaderMap;
use http::{Extensions, Method, StatusCode, Uri, Version};

use crate::fields::Fields;
use crate::parts_box::{PartsBox, SpareBoxes, SpareParts};
use crate::request_target::RequestTarget;

thread_local! {
    static SPARE_REQUESTS: SpareBoxes<RequestParts> = const { RefCell::new(Vec::new()) };
    static SPARE_RESPONSES: SpareBoxes<ResponseParts> = const { RefCell::new(Vec::new()) };
}

/// A request: what its head says, and its body.
#[derive(Debug)]
pub struct Request<B> {
    head: PartsBox<RequestParts>,
    body: B,
}

/// The parts of a request's head.
#[derive(Debug, Default)]
pub struct RequestParts {
    /// The method of the request.
    pub method: Method,
    /// The target of the request.
    pub target: RequestTarget,
    /// The version of the protocol in which the request came, or is to go on.
    pub version: Version,
    /// The headers of the request.
    pub fields: Fields,
    /// What travels with the request and is none of its text.
    pub extensions: Extensions,
}

/// A response: what its head says, and its body.
#[derive(Debug)]
pub struct Response<B> {
    head: PartsBox<ResponseParts>,
    body: B,
}

/// The parts of a response's head.
#[derive(Debug, Default)]
pub struct ResponseParts {
    /// The status of the response.
    pub status: StatusCode,
    /// The version of the protocol in which the response came.
    pub version: Version,
    /// The headers of the response.
    pub fields: Fields,
}

impl SpareParts for RequestParts {
    fn with_spares<Answer>(use_spares: impl FnOnce(&SpareBoxes<Self>) -> Answer) -> Option<Answer> {
        SPARE_REQUESTS.try_with(use_spares).ok()
    }
}

impl SpareParts for ResponseParts {
    fn with_spares<Answer>(use_spares: impl FnOnce(&SpareBoxes<Self>) -> Answer) -> Option<Answer> {
        SPARE_RESPONSES.try_with(use_spares).ok()
    }
}

impl<B> Request<B> {
    /// `GET /` over HTTP/1.1, without headers.
    pub fn new(body: B) -> Self {
        Self::from_parts(RequestParts::default(), body)
    }

    /// A request of these parts.
    pub fn from_parts(head: RequestParts, body: B) -> Self {
        Self { head: PartsBox::new(head), body }
    }

    /// The parts of the request.
    pub fn into_parts(self) -> (RequestParts, B) {
        (self.head.into_parts(), self.body)
    }

    /// The method of the request.
    pub fn method(&self) -> &Method {
        &self.head.method
    }

    /// The method of the request, to be changed.
    pub fn method_mut(&mut self) -> &mut Method {
        &mut self.head.method
    }

    /// The target, in whatever form it is.
    pub fn target(&self) -> &RequestTarget {
        &self.head.target
    }

    /// The target, in whatever form it is, to be changed.
    pub fn target_mut(&mut self) -> &mut RequestTarget {
        &mut self.head.target
    }

    /// The parts of the target. The first call may have to read them.
    pub fn uri(&self) -> &Uri {
        self.head.target.uri()
    }

    /// The parts of the target, to be changed.
    pub fn uri_mut(&mut self) -> &mut Uri {
        self.head.target.uri_mut()
    }

    /// The version of the protocol.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The version of the protocol, to be changed.
    pub fn version_mut(&mut self) -> &mut Version {
        &mut self.head.version
    }

    /// The headers, in whatever form they are.
    pub fn fields(&self) -> &Fields {
        &self.head.fields
    }

    /// The headers, in whatever form they are, to be changed.
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.head.fields
    }

    /// All headers. The first call may have to read them.
    pub fn headers(&self) -> &HeaderMap {
        self.head.fields.map()
    }

    /// All headers, to be changed: from now on the map is what counts.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        self.head.fields.map_mut()
    }

    /// What travels with the request and is none of its text.
    pub fn extensions(&self) -> &Extensions {
        &self.head.extensions
    }

    /// What travels with the request, to be changed.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.head.extensions
    }

    /// The body of the message.
    pub fn body(&self) -> &B {
        &self.body
    }

    /// The body of the message, to be changed.
    pub fn body_mut(&mut self) -> &mut B {
        &mut self.body
    }

    /// The body without its head.
    pub fn into_body(self) -> B {
        self.body
    }

    /// The same head with another body.
    pub fn map<Other>(self, change: impl FnOnce(B) -> Other) -> Request<Other> {
        Request { head: self.head, body: change(self.body) }
    }
}

impl<B> Response<B> {
    /// `200 OK` over HTTP/1.1, without headers.
    pub fn new(body: B) -> Self {
        Self::from_parts(ResponseParts::default(), body)
    }

    /// A response of these parts.
    pub fn from_parts(head: ResponseParts, body: B) -> Self {
        Self { head: PartsBox::new(head), body }
    }

    /// The parts of the response.
    pub fn into_parts(self) -> (ResponseParts, B) {
        (self.head.into_parts(), self.body)
    }

    /// The parts of the response, where they are.
    pub fn parts(&self) -> &ResponseParts {
        &self.head
    }

    /// The response without its body, and the body.
    pub fn split_body(self) -> (Response<()>, B) {
        (Response { head: self.head, body: () }, self.body)
    }

    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The status of the response, to be changed.
    pub fn status_mut(&mut self) -> &mut StatusCode {
        &mut self.head.status
    }

    /// The version of the protocol.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The version of the protocol, to be changed.
    pub fn version_mut(&mut self) -> &mut Version {
        &mut self.head.version
    }

    /// The headers, in whatever form they are.
    pub fn fields(&self) -> &Fields {
        &self.head.fields
    }

    /// The headers, in whatever form they are, to be changed.
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.head.fields
    }

    /// All headers. The first call may have to read them.
    pub fn headers(&self) -> &HeaderMap {
        self.head.fields.map()
    }

    /// All headers, to be changed: from now on the map is what counts.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        self.head.fields.map_mut()
    }

    /// The body of the message.
    pub fn body(&self) -> &B {
        &self.body
    }

    /// The body of the message, to be changed.
    pub fn body_mut(&mut self) -> &mut B {
        &mut self.body
    }

    /// The body without its head.
    pub fn into_body(self) -> B {
        self.body
    }

    /// The same head with another body.
    pub fn map<Other>(self, change: impl FnOnce(B) -> Other) -> Response<Other> {
        Response { head: self.head, body: change(self.body) }
    }
}

impl<B> From<http::Request<B>> for Request<B> {
    fn from(request: http::Request<B>) -> Self {
        let (head, body) = request.into_parts();
        let head = RequestParts {
            method: head.method,
            target: head.uri.into(),
            version: head.version,
            fields: head.headers.into(),
            extensions: head.extensions,
        };
        Self::from_parts(head, body)
    }
}

impl<B> From<http::Request<B>> for Box<Request<B>> {
    fn from(request: http::Request<B>) -> Self {
        Self::new(request.into())
    }
}

impl<B> From<http::Response<B>> for Response<B> {
    fn from(response: http::Response<B>) -> Self {
        let (head, body) = response.into_parts();
        let head = ResponseParts { status: head.status, version: head.version, fields: head.headers.into() };
        Self::from_parts(head, body)
    }
}
