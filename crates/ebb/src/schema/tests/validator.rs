//! What does the schema say of a document? The keywords of draft 7 that the schema uses, and no others.

use serde_json::Value;

/// The faults of a document, each after its place.
pub(super) fn faults(schema: &Value, document: &Value) -> Vec<String> {
    Validator { whole: schema }.faults(schema, &Part { value: document, place: String::new() })
}

/// A value of the document, and its place there.
struct Part<'d> {
    value: &'d Value,
    place: String,
}

impl Part<'_> {
    /// A field of it, or an item by its number.
    fn field<'v>(&self, name: &str, value: &'v Value) -> Part<'v> {
        Part { value, place: format!("{}/{name}", self.place) }
    }

    fn fault(&self, message: &str) -> Vec<String> {
        vec![format!("{}: {message}", self.place)]
    }
}

struct Validator<'s> {
    /// The schema into which references lead.
    whole: &'s Value,
}

impl Validator<'_> {
    fn faults(&self, schema: &Value, part: &Part<'_>) -> Vec<String> {
        let keywords = schema.as_object().expect("a schema is a map").iter();
        keywords.flat_map(|(keyword, wanted)| self.of_keyword(schema, keyword, wanted, part)).collect()
    }

    fn holds(&self, schema: &Value, part: &Part<'_>) -> bool {
        self.faults(schema, part).is_empty()
    }

    fn of_keyword(&self, schema: &Value, keyword: &str, wanted: &Value, part: &Part<'_>) -> Vec<String> {
        let schemas = || wanted.as_array().into_iter().flatten();
        match keyword {
            // `then` is read with `if`, and `definitions` by references.
            "$schema" | "title" | "description" | "examples" | "deprecated" | "definitions" | "then" => {
                Vec::new()
            }
            "$ref" => {
                let pointer = wanted.as_str().and_then(|text| text.strip_prefix('#'));
                let referred = pointer.and_then(|pointer| self.whole.pointer(pointer));
                self.faults(referred.expect("a reference leads into the schema"), part)
            }
            "allOf" => schemas().flat_map(|schema| self.faults(schema, part)).collect(),
            "anyOf" if schemas().any(|schema| self.holds(schema, part)) => Vec::new(),
            "not" if !self.holds(wanted, part) => Vec::new(),
            "if" => {
                let then = self.holds(wanted, part).then_some(&schema["then"]);
                then.map(|schema| self.faults(schema, part)).unwrap_or_default()
            }
            "properties" | "additionalProperties" | "propertyNames" | "required" => {
                self.of_map(schema, keyword, wanted, part)
            }
            "items" => {
                let items = part.value.as_array().into_iter().flatten().enumerate();
                items.flat_map(|(at, item)| self.faults(wanted, &part.field(&at.to_string(), item))).collect()
            }
            keyword if is_so(keyword, wanted, part.value) => Vec::new(),
            keyword => part.fault(&format!("{} breaks {keyword}: {wanted}", part.value)),
        }
    }

    /// A keyword about the fields of a map, which says nothing of other values.
    fn of_map(&self, schema: &Value, keyword: &str, wanted: &Value, part: &Part<'_>) -> Vec<String> {
        let Some(fields) = part.value.as_object() else { return Vec::new() };
        if keyword == "required" {
            let names = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
            let missing = names.filter(|name| !fields.contains_key(*name));
            return missing.flat_map(|name| part.fault(&format!("{name} is missing"))).collect();
        }
        let of_field = |(name, value): (&String, &Value)| {
            let is_known = schema["properties"].get(name).is_some();
            match (keyword, wanted) {
                ("propertyNames", _) => self.faults(wanted, &part.field(name, &Value::from(name.as_str()))),
                ("properties", _) => {
                    let known = wanted.get(name);
                    known.map(|known| self.faults(known, &part.field(name, value))).unwrap_or_default()
                }
                _ if is_known => Vec::new(),
                (_, Value::Bool(false)) => part.fault(&format!("{name} is not known")),
                _ => self.faults(wanted, &part.field(name, value)),
            }
        };
        fields.iter().flat_map(of_field).collect()
    }
}

/// Whether a value is as a keyword without further schemas wants it. Each says nothing of other types.
fn is_so(keyword: &str, wanted: &Value, value: &Value) -> bool {
    let limit = || wanted.as_f64().expect("a limit is a number");
    let size = || usize::try_from(wanted.as_u64().expect("a size is a whole number")).expect("a small one");
    match keyword {
        "type" => {
            let types = wanted.as_array().map_or(std::slice::from_ref(wanted), Vec::as_slice);
            types.iter().any(|name| is_of_type(name, value))
        }
        "const" => value == wanted,
        "enum" => wanted.as_array().is_some_and(|all| all.contains(value)),
        "minimum" => value.as_f64().is_none_or(|number| number >= limit()),
        "maximum" => value.as_f64().is_none_or(|number| number <= limit()),
        "maxLength" => value.as_str().is_none_or(|text| text.chars().count() <= size()),
        "minItems" => value.as_array().is_none_or(|items| items.len() >= size()),
        "maxItems" => value.as_array().is_none_or(|items| items.len() <= size()),
        "minProperties" => value.as_object().is_none_or(|fields| fields.len() >= size()),
        "maxProperties" => value.as_object().is_none_or(|fields| fields.len() <= size()),
        "pattern" => value.as_str().is_none_or(|text| matches(wanted.as_str().unwrap_or_default(), text)),
        "anyOf" | "not" => false,
        other => panic!("the schema uses {other}, which is to be read here"),
    }
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("a type is a word") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the schema has a type {other}"),
    }
}

/// The patterns of the schema, written as code: there are three.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern {
        "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" => {
            let is_legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !text.is_empty() && text.bytes().all(is_legal) && !text.starts_with('-') && !text.ends_with('-')
        }
        r"^(autoscaling\.knative\.dev|ebb\.dev)/" => {
            text.starts_with("autoscaling.knative.dev/") || text.starts_with("ebb.dev/")
        }
        "^[^=]+$" => !text.is_empty() && !text.contains('='),
        other => panic!("the schema has a pattern {other}, which is to be written here"),
    }
}
