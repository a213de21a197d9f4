//! YAML as a tree that remembers where each part was written, so that a refusal can point at line and column.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// Line and column, both from 1.
pub type TextPlace = (u64, u64);

/// One value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlNode {
    /// Line and column at which the value begins, for messages about it.
    pub place: TextPlace,
    /// The value that begins there.
    pub value: YamlValue,
    /// A number as it is written, such as `1.0` or `1e3`, which its value no longer shows; `None` for all
    /// other values.
    pub written: Option<Box<str>>,
}

/// A value of YAML's core schema.
#[derive(Clone, Debug, PartialEq)]
pub enum YamlValue {
    /// Nothing is written, or `null`.
    Null,
    /// A plain word `true` or `false`.
    Bool(bool),
    /// A whole number of up to 128 bits.
    Integer(i128),
    /// A number with a fraction or an exponent.
    Number(f64),
    /// A quoted text, or a plain one that is nothing else.
    Text(String),
    /// A sequence, in the order written.
    List(Vec<YamlNode>),
    /// A mapping in the order written.
    Map(Vec<(YamlKey, YamlNode)>),
}

/// A mapping's key and where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlKey {
    /// Line and column at which the key begins.
    pub place: TextPlace,
    /// The key as a text, also where a number or a plain word is written.
    pub text: String,
}

/// Why a text is not YAML.
#[derive(Clone, Debug, PartialEq)]
pub struct NotYaml {
    /// Where reading stopped, if known.
    pub place: Option<TextPlace>,
    /// What the library found there, as one line without the place.
    pub message: String,
}

/// Reads every document of a text; empty ones are left out.
pub fn read_yaml(text: &str) -> Result<Vec<YamlNode>, NotYaml> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let read: Result<Vec<YamlNode>, _> = serde_saphyr::from_multiple_with_options(text, options);
    let mut documents = read.map_err(|error| NotYaml {
        place: error.location().map(place_of),
        message: one_line(&error.to_string()),
    })?;
    let mut lines = TextLines::of(text);
    for document in &mut documents {
        note_numbers(document, &mut lines);
    }
    Ok(documents)
}

/// Keeps with each number how it is written.
fn note_numbers(node: &mut YamlNode, lines: &mut TextLines<'_>) {
    match &mut node.value {
        YamlValue::Integer(_) | YamlValue::Number(_) => node.written = number_at(node.place, lines),
        YamlValue::List(items) => items.iter_mut().for_each(|item| note_numbers(item, lines)),
        YamlValue::Map(entries) => entries.iter_mut().for_each(|(_, value)| note_numbers(value, lines)),
        YamlValue::Null | YamlValue::Bool(_) | YamlValue::Text(_) => {}
    }
}

/// The number that begins at this place; `None` if a tag or the name of an anchor does.
fn number_at(place: TextPlace, lines: &mut TextLines<'_>) -> Option<Box<str>> {
    let rest = lines.rest_from(place)?;
    let is_over = |letter: char| letter.is_whitespace() || matches!(letter, ',' | ']' | '}');
    let word = rest.split(is_over).next()?;
    let begins = word.trim_start_matches(['+', '-', '.']);
    begins.starts_with(|letter: char| letter.is_ascii_digit()).then(|| word.into())
}

/// The lines of a text, with the place that was looked up last. Numbers come in the order of the text, so
/// that a long line, such as JSON without breaks, is gone through once.
#[derive(Debug)]
struct TextLines<'t> {
    lines: Vec<&'t str>,
    /// The line of that place, from 0.
    line: usize,
    /// How many letters and how many bytes of the line are before it.
    letters: usize,
    bytes: usize,
}

impl<'t> TextLines<'t> {
    fn of(text: &'t str) -> Self {
        Self { lines: text.lines().collect(), line: 0, letters: 0, bytes: 0 }
    }

    /// The rest of the line from a place on; empty behind its end, `None` behind the last line.
    fn rest_from(&mut self, (line, column): TextPlace) -> Option<&'t str> {
        let line = usize::try_from(line).ok()?.checked_sub(1)?;
        let letters = usize::try_from(column).ok()?.checked_sub(1)?;
        if line != self.line || letters < self.letters {
            (self.line, self.letters, self.bytes) = (line, 0, 0);
        }
        let rest = self.lines.get(line)?.get(self.bytes..)?;
        let skipped = rest.char_indices().nth(letters - self.letters).map_or(rest.len(), |(at, _)| at);
        (self.letters, self.bytes) = (letters, self.bytes + skipped);
        Some(&rest[skipped..])
    }
}

impl YamlValue {
    /// What a person calls this kind of value.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false without quotes",
            Self::Integer(_) | Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

impl YamlNode {
    /// The value of a mapping's key; `None` also where this is no mapping.
    pub fn field(&self, name: &str) -> Option<&YamlNode> {
        let YamlValue::Map(entries) = &self.value else { return None };
        entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| node)
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let YamlValue::Text(text) = &self.value { Some(text) } else { None }
    }
}

fn place_of(location: Location) -> TextPlace {
    (location.line(), location.column())
}

/// The library's messages may span lines and name the place again; a refusal is one line that begins with it.
fn one_line(message: &str) -> String {
    let joined = message.split_whitespace().collect::<Vec<_>>().join(" ");
    // The second is advice for programmers.
    let end = [" at line ", ", set DuplicateKeyPolicy"].iter().filter_map(|noise| joined.find(noise)).min();
    joined[..end.unwrap_or(joined.len())].to_owned()
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned: Spanned<YamlValue> = Spanned::deserialize(deserializer)?;
        Ok(Self { place: place_of(spanned.referenced), value: spanned.value, written: None })
    }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = YamlValue;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Integer(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<YamlValue, E> {
        Ok(YamlValue::Integer(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlValue, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let key = YamlKey { place: place_of(key.referenced), text: key.value };
            map.push((key, entries.next_value()?));
        }
        Ok(YamlValue::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> YamlNode {
        read_yaml(text).expect("YAML").remove(0)
    }

    #[test]
    fn every_part_knows_its_line_and_column() {
        let document = first("a: 1\nb:\n  - \"1\"\n  - c: true\n");
        assert_eq!(document.place, (1, 1));
        let YamlValue::Map(entries) = &document.value else { panic!("a mapping: {document:?}") };
        assert_eq!((entries[1].0.place, entries[1].0.text.as_str()), ((2, 1), "b"));
        let YamlValue::List(items) = &entries[1].1.value else { panic!("a list: {document:?}") };
        assert_eq!((items[0].place, &items[0].value), ((3, 5), &YamlValue::Text("1".to_owned())));
        let YamlValue::Map(inner) = &items[1].value else { panic!("a mapping: {items:?}") };
        assert_eq!(inner[0].0.place, (4, 5));
        assert_eq!((inner[0].1.place, &inner[0].1.value), ((4, 8), &YamlValue::Bool(true)));
    }

    #[test]
    fn a_long_line_is_gone_through_once() {
        let text = "{\"ä\": [10, 1.50, \"ö\", 7], \"b\": -2}";
        let mut lines = TextLines::of(text);
        for (number, after) in [("10", ", 1.50"), ("1.50", ", \"ö\""), ("7", "]"), ("-2", "}")] {
            let bytes = text.find(&format!("{number}{after}")).expect("it is in the text");
            let column = u64::try_from(text[..bytes].chars().count() + 1).expect("a short text");
            assert_eq!(number_at((1, column), &mut lines).as_deref(), Some(number));
            assert_eq!((lines.line, lines.bytes), (0, bytes), "the next one is looked for from here on");
        }
        // Going back is possible, too, and there is nothing behind the end.
        assert_eq!(lines.rest_from((1, 1)), Some(text));
        assert_eq!(lines.rest_from((1, 1_000)), Some(""));
        assert_eq!((lines.rest_from((2, 1)), lines.rest_from((0, 1))), (None, None));
        // With a search from the beginning of the line for each number, this takes minutes.
        let numbers: Vec<String> = (0..50_000).map(|number| format!("{number}.0")).collect();
        let YamlValue::List(items) = first(&format!("[{}]", numbers.join(","))).value else {
            panic!("it is a list")
        };
        let written: Vec<&str> = items.iter().filter_map(|item| item.written.as_deref()).collect();
        assert_eq!(written, numbers);
    }

    #[test]
    fn a_number_is_kept_as_it_is_written() {
        for (text, written) in [
            ("x: 10", Some("10")),
            ("x: 1.10 # a version", Some("1.10")),
            ("x: -1e3", Some("-1e3")),
            ("x: \"10\"", None),
            ("x: ten", None),
        ] {
            let document = first(text);
            assert_eq!(document.field("x").and_then(|node| node.written.as_deref()), written, "{text}");
        }
        let document = first("ä: [1.0, 2.50]\nb: &n 7\nc: *n\n");
        let YamlValue::Map(entries) = &document.value else { panic!("a mapping: {document:?}") };
        let YamlValue::List(items) = &entries[0].1.value else { panic!("a list: {document:?}") };
        let written = |node: &YamlNode| node.written.as_deref().map(str::to_owned);
        assert_eq!(items.iter().filter_map(written).collect::<Vec<_>>(), ["1.0", "2.50"]);
    }

    #[test]
    fn scalars_have_the_core_schemas_types() {
        for (text, value) in [
            ("x: 10", YamlValue::Integer(10)),
            ("x: \"10\"", YamlValue::Text("10".to_owned())),
            ("x: 1.5", YamlValue::Number(1.5)),
            ("x: true", YamlValue::Bool(true)),
            ("x: yes", YamlValue::Text("yes".to_owned())),
            ("x: ", YamlValue::Null),
            ("x: ~", YamlValue::Null),
            ("x: 60s", YamlValue::Text("60s".to_owned())),
            ("x: {}", YamlValue::Map(vec![])),
        ] {
            assert_eq!(first(text).field("x").map(|node| node.value.clone()), Some(value), "{text}");
        }
    }

    #[test]
    fn empty_documents_are_left_out() {
        assert_eq!(read_yaml("---\n# nothing\n---\na: 1\n---\n").map(|all| all.len()), Ok(1));
        assert_eq!(read_yaml("# only a comment\n"), Ok(vec![]));
        assert_eq!(read_yaml(""), Ok(vec![]));
    }

    #[test]
    fn broken_yaml_is_refused_with_its_place() {
        for text in ["a: [1, 2\nb: 3\n", "a: b: c\n", "a: 1\na: 2\n", "a:\n\t- b\n", "x: *nowhere\n"] {
            let refusal = read_yaml(text).expect_err(text);
            assert!(refusal.place.is_some(), "{text:?}: {refusal:?}");
            assert!(!refusal.message.contains('\n') && !refusal.message.is_empty(), "{refusal:?}");
        }
        let refusal = read_yaml("a: 1\na: 2\n").expect_err("a duplicate key");
        assert_eq!(refusal.place, Some((2, 1)), "{refusal:?}");
    }
}
