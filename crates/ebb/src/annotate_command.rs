//! The line by which a person gives a workload of a cluster the annotations that a command has printed: one
//! line for a shell, whatever the workload and the annotations hold.

use std::fmt::Write as _;

/// The workload in such a line where no name is known.
const UNKNOWN: &str = "deployment/NAME";

/// `kubectl annotate` with these annotations. The workload is KIND/NAME, or the NAME of a Deployment; without
/// one the line has a place for it.
pub(crate) fn annotate_command(workload: Option<&str>, annotations: &[(String, String)]) -> String {
    let workload = match workload {
        Some(workload) if workload.contains('/') => workload.to_owned(),
        Some(name) => format!("deployment/{name}"),
        None => UNKNOWN.to_owned(),
    };
    let mut command = format!("kubectl annotate --overwrite {}", quoted(&workload));
    for (key, value) in annotations {
        // A String takes whatever is written to it.
        let _ = write!(command, " {}={}", quoted(key), quoted(value));
    }
    command
}

/// A word for a shell. One with line ends is in the form `$'…'`, which bash, zsh and ksh know, so that the
/// line stays one line.
fn quoted(value: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "./:@%_-+,=".contains(letter);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    if !value.contains(char::is_control) {
        return format!("'{}'", value.replace('\'', r"'\''"));
    }
    let mut word = String::from("$'");
    for letter in value.chars() {
        match letter {
            '\n' => word.push_str(r"\n"),
            '\t' => word.push_str(r"\t"),
            '\\' | '\'' => word.extend(['\\', letter]),
            other => word.push(other),
        }
    }
    word + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_each_annotation_as_it_was() {
        for (value, expected) in [
            ("hpa.autoscaling.knative.dev", "hpa.autoscaling.knative.dev"),
            ("", "''"),
            ("Mon 8-18: 3", "'Mon 8-18: 3'"),
            ("it's", r"'it'\''s'"),
            ("a: 1\nb: 'c\\d'\n", r"$'a: 1\nb: \'c\\d\'\n'"),
        ] {
            assert_eq!(quoted(value), expected);
        }
    }

    #[test]
    fn the_line_names_the_workload_with_its_kind() {
        let annotations = [("a.b/c".to_owned(), "1".to_owned()), ("d".to_owned(), "2 3".to_owned())];
        for (workload, named) in [
            (Some("web"), "deployment/web"),
            (Some("statefulset/web"), "statefulset/web"),
            (None, "deployment/NAME"),
            (Some("deployment/a$(b)"), "'deployment/a$(b)'"),
        ] {
            let expected = format!("kubectl annotate --overwrite {named} a.b/c=1 d='2 3'");
            assert_eq!(annotate_command(workload, &annotations), expected);
        }
    }
}
