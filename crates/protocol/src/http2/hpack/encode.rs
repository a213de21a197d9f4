//! Writes heads as blocks of HPACK, without use of the dynamic table.

use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::table::static_index;
use crate::fields::Fields;
use crate::message::Request;
use crate::target::path_and_query;

/// Says that our side of the compression keeps no table (RFC 7541 §6.3). A peer that allows less than usual
/// waits for such a word.
const TABLE_UNUSED: u8 = 0x20;

/// A header that must never enter a table, at no hop.
const NEVER_INDEXED: u8 = 0x10;

const AUTHORITY: usize = 1;
const GET: u8 = 2;
const POST: u8 = 3;
const METHOD: usize = 2;
const ROOT: u8 = 4;
const PATH: usize = 4;
const HTTP: u8 = 6;
const HTTPS: u8 = 7;
const SCHEME: usize = 6;
const STATUS: usize = 8;

/// The state with which the heads of one connection are written.
#[derive(Debug, Default)]
pub struct Encoder {
    is_announced: bool,
}

impl Encoder {
    /// Begins a block; the first one tells the peer that the dynamic table stays empty.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_announced, true) {
            out.push(TABLE_UNUSED);
        }
    }
}

/// The head of a request.
pub fn encode_request<B>(request: &Request<B>, out: &mut Vec<u8>) {
    match *request.method() {
        Method::GET => out.push(0x80 | GET),
        Method::POST => out.push(0x80 | POST),
        _ => literal(METHOD, request.method().as_str().as_bytes(), out),
    }
    match request.uri().scheme_str() {
        None | Some("http") => out.push(0x80 | HTTP),
        Some("https") => out.push(0x80 | HTTPS),
        Some(scheme) => literal(SCHEME, scheme.as_bytes(), out),
    }
    if let Some(authority) = request.uri().authority() {
        literal(AUTHORITY, authority.as_str().as_bytes(), out);
    }
    match path_and_query(request) {
        b"/" => out.push(0x80 | ROOT),
        path => literal(PATH, path, out),
    }
    request.fields().each(|name, value| encode_field(name, value, out));
}

/// The head of a response, without its end: more fields may follow.
pub fn encode_response(status: StatusCode, fields: &Fields, out: &mut Vec<u8>) {
    match status.as_u16() {
        200 => out.push(0x88),
        204 => out.push(0x89),
        206 => out.push(0x8a),
        304 => out.push(0x8b),
        400 => out.push(0x8c),
        404 => out.push(0x8d),
        500 => out.push(0x8e),
        _ => literal(STATUS, status.as_str().as_bytes(), out),
    }
    fields.each(|name, value| encode_field(name, value, out));
}

/// Writes one header as a literal that enters no table.
pub fn encode_field(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    let form = if value.is_sensitive() { NEVER_INDEXED } else { 0 };
    field(name, value.as_bytes(), form, out);
}

/// Writes one header with a value of our own text.
pub fn encode_text(name: &HeaderName, value: &[u8], out: &mut Vec<u8>) {
    field(name, value, 0, out);
}

fn field(name: &HeaderName, value: &[u8], form: u8, out: &mut Vec<u8>) {
    if let Some(index) = static_index(name) {
        number(index, 4, form, out);
    } else {
        out.push(form);
        string(name.as_str().as_bytes(), out);
    }
    string(value, out);
}

/// A value for a name of the static table.
fn literal(index: usize, value: &[u8], out: &mut Vec<u8>) {
    number(index, 4, 0, out);
    string(value, out);
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    number(text.len(), 7, 0, out);
    out.extend_from_slice(text);
}

/// A number whose first byte has so many bits for it, below `form` (RFC 7541 §5.1). Nearly all fit into that
/// byte, and where this is called it is known how many bits there are.
#[inline]
fn number(number: usize, bits: u32, form: u8, out: &mut Vec<u8>) {
    let mask = (1_usize << bits) - 1;
    if number < mask {
        return out.push(form | low_byte(number));
    }
    out.push(form | low_byte(mask));
    rest_of_number(number - mask, out);
}

/// The part of a number that its first byte has no room for, seven bits in each byte.
fn rest_of_number(mut rest: usize, out: &mut Vec<u8>) {
    while rest >= 0x80 {
        out.push(0x80 | low_byte(rest & 0x7f));
        rest >>= 7;
    }
    out.push(low_byte(rest));
}

fn low_byte(number: usize) -> u8 {
    number.to_le_bytes()[0]
}
