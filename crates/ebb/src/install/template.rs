//! Filling the named places of a template.
//!
//! A line of the template stands once for each value of the place in it, so a place without a value takes its
//! line away, and one whose only value is an empty text lets the rest of its line stand.

/// The name of a place, and its values.
pub(super) type TemplatePlace = (&'static str, Vec<String>);

/// The text of a template, each line of which has one place at most, as `{{NAME}}`.
pub(super) fn filled(template: &str, places: &[TemplatePlace]) -> String {
    let mut text = String::new();
    for line in template.split_inclusive('\n') {
        let place = line.split_once("{{").and_then(|(before, rest)| {
            let (name, after) = rest.split_once("}}")?;
            Some((before, name, after))
        });
        match place {
            None => text.push_str(line),
            Some((before, name, after)) => {
                let (_, values) = places
                    .iter()
                    .find(|(known, _)| *known == name)
                    .expect("each place of a template is known");
                for value in values {
                    text.extend([before, value, after]);
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stands_once_for_each_value_of_its_place() {
        let template = "a={{one}}\nb={{several}};\n{{no}}c\n{{yes}}d {e}\n";
        let text = |text: &str| text.to_owned();
        let places = [
            ("one", vec![text("1")]),
            ("several", vec![text("2"), text("3")]),
            ("no", Vec::new()),
            ("yes", vec![String::new()]),
        ];
        assert_eq!(filled(template, &places), "a=1\nb=2;\nb=3;\nd {e}\n");
    }
}
