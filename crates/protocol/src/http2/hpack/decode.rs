//! Reads a head, field by field.

use std::ops::ControlFlow;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, StatusCode};

use super::repeats::RepeatedLiterals;
use super::table::{DynamicTable, ENTRY_OVERHEAD, Name, STATIC_ENTRIES, TABLE_BYTES};
use super::{CompressionError, Field, huffman};
use crate::ambiguity::is_scheme;
use crate::target::{TargetProblem, misplaced_byte, misplaced_in_host, percent_encode_odd_bytes};

/// No number in a head needs to be larger, and four further bytes can say it.
const NUMBER_MAX: usize = 1 << 28;

/// As many changes of the table's size as stand before one head: the least size that was meant meanwhile, and
/// the last one (RFC 7541 §4.2). Each empties a part of the table and brings no field.
const TABLE_CHANGES_MAX: u32 = 2;

/// More room than this for unpacked letters is not kept from one head to the next.
const TEXT_BYTES_KEPT: usize = 4 * 1024;

const REFUSED_FORM: Field = Field::RefusedTarget(TargetProblem::Form);

/// What one peer's heads are read with.
#[derive(Debug, Default)]
pub struct HpackDecoder {
    pub(super) table: DynamicTable,
    /// Where Huffman codes are unpacked.
    text: Vec<u8>,
    pub(super) repeats: RepeatedLiterals,
}

/// What was read of a head so far, as far as it decides whether the table's size may change.
#[derive(Debug, Default)]
pub(super) struct HeadStart {
    pub(super) has_fields: bool,
    table_changes: u32,
}

/// What a field looks like, by its first bits (RFC 7541 §6).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Literal {
    Indexed,
    Plain,
    /// Must never enter a table, at no hop.
    Secret,
}

impl HpackDecoder {
    /// Gives each field of a whole head to `take`, with the bytes that it counts for (RFC 9113 §6.5.2). Once
    /// `take` breaks off, the rest is read for the table's sake only: of a megabyte of fields that no reader
    /// wants, what enters no table is stepped over.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut take: impl FnMut(Field, usize) -> ControlFlow<()>,
    ) -> Result<(), CompressionError> {
        let mut input = HeadBytes(block);
        let mut start = HeadStart::default();
        let mut wanted = ControlFlow::Continue(());
        self.repeats.begin();
        while let Some(&byte) = input.0.first() {
            let literal = match byte {
                0x80.. => {
                    let index = input.number(7)?;
                    if wanted.is_continue() {
                        let (field, bytes) = self.table.field(index).ok_or(CompressionError::Index)?;
                        wanted = take(field, bytes);
                    } else if !self.table.has(index) {
                        // Not built, but still checked: an entry that is not there means that the two tables
                        // differ, and then every later head would be read as another one.
                        return Err(CompressionError::Index);
                    }
                    start.has_fields = true;
                    continue;
                }
                0x40.. => Literal::Indexed,
                0x20.. => {
                    self.change_table(&mut input, &mut start)?;
                    continue;
                }
                0x10.. => Literal::Secret,
                _ => Literal::Plain,
            };
            if wanted.is_continue()
                && literal == Literal::Plain
                && let Some(known) = self.repeats.repeated(input.0)
            {
                // The field is cloned where the head takes it: a function that returned it would
                // move it.
                input.0 = &input.0[known.written.len()..];
                wanted = take(known.field.clone(), known.bytes);
            } else if wanted.is_continue() {
                let read = match literal {
                    Literal::Plain => self.plain(&mut input),
                    Literal::Indexed | Literal::Secret => self.literal(&mut input, literal),
                };
                let (field, bytes) = read?;
                wanted = take(field, bytes);
            } else if literal == Literal::Indexed {
                // The field is unwanted now, but later heads refer to the entry that it makes.
                self.literal(&mut input, literal)?;
            } else {
                self.step_over(&mut input)?;
            }
            start.has_fields = true;
        }
        if self.text.capacity() > TEXT_BYTES_KEPT {
            self.text = Vec::new();
        }
        Ok(())
    }

    /// The size of the table changes, which it may only before the first field.
    pub(super) fn change_table(
        &mut self,
        input: &mut HeadBytes<'_>,
        start: &mut HeadStart,
    ) -> Result<(), CompressionError> {
        let bytes_max = input.number(5)?;
        start.table_changes += 1;
        // Larger than we offered is the peer taking our memory.
        if start.has_fields || start.table_changes > TABLE_CHANGES_MAX || bytes_max > TABLE_BYTES {
            return Err(CompressionError::TableSize);
        }
        self.table.resize(bytes_max);
        Ok(())
    }

    /// A literal that repeats none, and that may be kept and compared with those of later heads.
    fn plain(&mut self, input: &mut HeadBytes<'_>) -> Result<(Field, usize), CompressionError> {
        let begin = input.0;
        let (field, bytes) = self.literal(input, Literal::Plain)?;
        // What the dynamic table has under a number changes.
        if HeadBytes(begin).number(4).is_ok_and(|index| index <= STATIC_ENTRIES) {
            self.repeats.note(&begin[..begin.len() - input.0.len()], &field, bytes);
        }
        Ok((field, bytes))
    }

    pub(super) fn literal(
        &mut self,
        input: &mut HeadBytes<'_>,
        literal: Literal,
    ) -> Result<(Field, usize), CompressionError> {
        let index = input.number(if literal == Literal::Indexed { 6 } else { 4 })?;
        let (name, name_bytes) = if index == 0 {
            let text = input.string(&mut self.text)?;
            (name_of(text), text.len())
        } else {
            let name = self.table.name(index).ok_or(CompressionError::Index)?;
            let length = name.length();
            (name, length)
        };
        let value = input.string(&mut self.text)?;
        let bytes = name_bytes + value.len() + ENTRY_OVERHEAD;
        let mut field = field_of(&name, value);
        if literal == Literal::Secret
            && let Field::Header(_, value) = &mut field
        {
            // The next hop has to keep the header out of tables as well (RFC 7541 §7.1.3).
            value.set_sensitive(true);
        }
        if literal == Literal::Indexed {
            // Also what is malformed: the peer has it in its table, and both must count alike.
            self.table.insert(name, field.clone(), bytes);
        }
        Ok((field, bytes))
    }

    /// A literal that enters no table.
    pub(super) fn step_over(&self, input: &mut HeadBytes<'_>) -> Result<(), CompressionError> {
        let index = input.number(4)?;
        if index == 0 {
            input.raw_string()?;
        } else if !self.table.has(index) {
            return Err(CompressionError::Index);
        }
        input.raw_string().map(drop)
    }
}

fn name_of(text: &[u8]) -> Name {
    match text {
        b":method" => Name::Method,
        b":scheme" => Name::Scheme,
        b":authority" => Name::Authority,
        b":path" => Name::Path,
        b":status" => Name::Status,
        // Names are written small in HTTP/2; a large letter makes a message malformed (RFC 9113 §8.2.1).
        _ => HeaderName::from_lowercase(text).map_or(Name::Malformed(text.len()), Name::Header),
    }
}

fn scheme_of(value: &[u8]) -> Option<Field> {
    let scheme = Scheme::try_from(value).ok().filter(|scheme| is_scheme(scheme.as_str()));
    if value.is_empty() { None } else { Some(scheme.map_or(REFUSED_FORM, Field::Scheme)) }
}

fn field_of(name: &Name, value: &[u8]) -> Field {
    let understood = match name {
        Name::Method => Method::from_bytes(value).ok().map(Field::Method),
        Name::Scheme => scheme_of(value),
        Name::Authority => authority_of(value),
        Name::Path => path_of(value),
        Name::Status => StatusCode::from_bytes(value).ok().map(Field::Status),
        Name::Header(name) => header_value(value).map(|value| Field::Header(name.clone(), value)),
        Name::Malformed(_) => None,
    };
    understood.unwrap_or(Field::Malformed)
}

/// A host, perhaps with its port. Names of users are not allowed before it (RFC 9113 §8.3.1): what stands
/// there may look like a host to others.
fn authority_of(value: &[u8]) -> Option<Field> {
    if value.is_empty() {
        return None;
    }
    let authority = Authority::try_from(value).ok().filter(|_| !value.contains(&b'@'));
    Some(authority.map_or_else(|| refused_authority(value), Field::Authority))
}

#[cold]
fn refused_authority(value: &[u8]) -> Field {
    let misplaced = misplaced_in_host(value).filter(|misplaced| misplaced.byte != b'@');
    misplaced.map_or(REFUSED_FORM, |misplaced| Field::RefusedTarget(TargetProblem::Host(misplaced)))
}

/// A path, or the `*` of `OPTIONS`. An empty one is malformed (RFC 9113 §8.3.1).
fn path_of(value: &[u8]) -> Option<Field> {
    if value.is_empty() {
        return None;
    }
    let is_absolute = value.first() == Some(&b'/') || value == b"*";
    // What is behind a `#` is missing in what was read.
    let path = PathAndQuery::try_from(value).ok();
    let path = path.filter(|path| is_absolute && path.as_str().len() == value.len());
    Some(path.map_or_else(|| odd_path(value), Field::Path))
}

#[cold]
fn odd_path(value: &[u8]) -> Field {
    if let Some(misplaced) = misplaced_byte(value) {
        return Field::RefusedTarget(TargetProblem::Byte(misplaced));
    }
    if value.first() != Some(&b'/') {
        return REFUSED_FORM;
    }
    // Made now only to know whether there is one: the path may be one of many in a table.
    match percent_encode_odd_bytes(value) {
        Ok(_) => Field::OddPath(Bytes::copy_from_slice(value)),
        Err(problem) => Field::RefusedTarget(problem),
    }
}

/// A value with a blank at an end is malformed (RFC 9113 §8.2.1), as is one with a control character
/// anywhere: what is cut off here, another reader might take for a part of it.
fn header_value(value: &[u8]) -> Option<HeaderValue> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_blank(value.first()) || is_blank(value.last()) {
        return None;
    }
    HeaderValue::from_bytes(value).ok()
}

/// What is left of a head.
pub(super) struct HeadBytes<'a>(pub(super) &'a [u8]);

impl<'a> HeadBytes<'a> {
    fn byte(&mut self) -> Result<u8, CompressionError> {
        let (&byte, rest) = self.0.split_first().ok_or(CompressionError::Truncated)?;
        self.0 = rest;
        Ok(byte)
    }

    /// A number whose first byte has so many bits for it (RFC 7541 §5.1).
    pub(super) fn number(&mut self, bits: u32) -> Result<usize, CompressionError> {
        let mask = (1_usize << bits) - 1;
        let mut number = usize::from(self.byte()?) & mask;
        if number < mask {
            return Ok(number);
        }
        // So many and no more: a number can be written with zeros for as long as a peer likes.
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            number += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return if number <= NUMBER_MAX { Ok(number) } else { Err(CompressionError::Integer) };
            }
        }
        Err(CompressionError::Integer)
    }

    /// A string, unpacked into `text` if need be.
    fn string<'t>(&mut self, text: &'t mut Vec<u8>) -> Result<&'t [u8], CompressionError>
    where
        'a: 't,
    {
        let is_compressed = self.0.first().is_some_and(|byte| byte & 0x80 != 0);
        let string = self.raw_string()?;
        if !is_compressed {
            return Ok(string);
        }
        text.clear();
        huffman::decode(string, text)?;
        Ok(text)
    }

    /// A string as it is written.
    fn raw_string(&mut self) -> Result<&'a [u8], CompressionError> {
        let length = self.number(7)?;
        let (string, rest) = self.0.split_at_checked(length).ok_or(CompressionError::Truncated)?;
        self.0 = rest;
        Ok(string)
    }
}
