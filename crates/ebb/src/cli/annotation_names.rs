//! Annotations as people name them on the command line: without the prefix, and a class by its first word.

use settings::{CLASS_ANNOTATION, Class, annotation_keys};

/// The annotation of a whole name, or of a name without its prefix; `None` if there is none.
pub(super) fn annotation_named(key: &str) -> Option<&'static str> {
    annotation_keys().find(|&name| name == key || without_prefix(name) == key)
}

/// The names of all annotations without their prefixes.
pub(super) fn short_names() -> impl Iterator<Item = &'static str> {
    annotation_keys().map(without_prefix)
}

/// What stands in the annotation: of a class that is said by its first word, the whole name.
pub(super) fn annotation_value(name: &str, value: &str) -> String {
    let classes = [Class::Kpa, Class::Ahpa, Class::Hpa];
    let is_meant = |class: &&Class| class.name().split_once('.').is_some_and(|(word, _)| word == value);
    let class = classes.iter().filter(|_| name == CLASS_ANNOTATION).find(is_meant);
    class.map_or(value, Class::name).to_owned()
}

fn without_prefix(name: &'static str) -> &'static str {
    name.rsplit_once('/').map_or(name, |(_, short)| short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_may_be_said_by_its_first_word() {
        assert_eq!(annotation_named("class"), Some(CLASS_ANNOTATION));
        for (value, whole) in [
            ("ahpa", "ahpa.autoscaling.knative.dev"),
            ("kpa", "kpa.autoscaling.knative.dev"),
            ("hpa", "hpa.autoscaling.knative.dev"),
            ("hpa.autoscaling.knative.dev", "hpa.autoscaling.knative.dev"),
            ("keda", "keda"),
        ] {
            assert_eq!(annotation_value(CLASS_ANNOTATION, value), whole);
        }
        let metric = annotation_named("metric").expect("an annotation");
        assert_eq!(annotation_value(metric, "hpa"), "hpa", "a word of another annotation stays");
    }
}
