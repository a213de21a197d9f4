//! Which keys has a ConfigMap of ebb's? Those of its `_example`, which a test of crate `settings` compares
//! with the code that reads them, each with the comment above it.

/// A key of a ConfigMap.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ConfigKeyText {
    pub(super) name: String,
    /// The comment of the key with its default, as one line.
    pub(super) about: String,
}

/// The keys of a manifest of a ConfigMap, in their order.
pub(super) fn keys(manifest: &str) -> Vec<ConfigKeyText> {
    let example = manifest.lines().skip_while(|line| *line != "  _example: |").skip(1);
    let (mut keys, mut about) = (Vec::new(), Vec::new());
    for line in example.map(str::trim) {
        if line.is_empty() {
            // Two keys below one comment share it; an empty line ends that.
            about.clear();
        } else if let Some(comment) = line.strip_prefix('#') {
            about.push(comment.trim().to_owned());
        } else if let Some((name, default)) = line.split_once(": ") {
            let about = format!("{} Default: {default}", about.join(" "));
            keys.push(ConfigKeyText { name: name.to_owned(), about: about.trim().to_owned() });
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_comment_above_it_and_its_default() {
        let manifest = "data:\n  _example: |\n    # Of all.\n\n    # --- A ---\n\n    # How long\n    # it takes.\n    a: \"1s\"\n    b.c: \"x: y\"\n\n    d: \"\"\n";
        let key = |name: &str, about: &str| ConfigKeyText { name: name.to_owned(), about: about.to_owned() };
        let expected = [
            key("a", "How long it takes. Default: \"1s\""),
            key("b.c", "How long it takes. Default: \"x: y\""),
            key("d", "Default: \"\""),
        ];
        assert_eq!(keys(manifest), expected);
    }
}
