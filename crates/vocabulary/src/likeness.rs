//! Which known name was probably meant by an unknown one?
//!
//! One measure for annotations, ConfigMaps, manifests and environments: how many letters have to be put in,
//! left out, replaced or swapped, as a part of the longer name. How a name is joined (`minScale`,
//! `min-scale`, `MIN_SCALE`) does not count, for that is what people mix up when they come from elsewhere.

/// Below this likeness (0 … 1) a suggestion misleads more than it helps: of a name with four letters two may
/// be wrong, but not both with nothing else right.
const LIKENESS_MIN: f64 = 0.55;

/// Longer names are cut: comparing costs the product of both lengths, and no key of ours is nearly as long.
const COMPARED_CHARS_MAX: usize = 100;

/// A known name that is like what was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LikelyName<'k> {
    /// The known name that comes nearest.
    pub name: &'k str,
    /// It is the same but for how its words are joined.
    pub is_same_words: bool,
}

/// The known name that is most like what was written, if any is.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<LikelyName<'k>> {
    let written = letters(written);
    let likely = known.into_iter().map(|name| (likeness_of(&written, &letters(name)), name));
    let (likeness, name) = likely
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))?;
    Some(LikelyName { name, is_same_words: likeness >= 1.0 })
}

/// How like two names are, from 0 to 1.
pub fn likeness(left: &str, right: &str) -> f64 {
    likeness_of(&letters(left), &letters(right))
}

fn likeness_of(left: &str, right: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(left, right)
}

/// Letters and digits in lower case.
fn letters(name: &str) -> String {
    let kept = name.chars().take(COMPARED_CHARS_MAX).filter(|letter| !matches!(letter, '-' | '_' | ' '));
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_however_it_is_joined_and_with_a_letter_or_two_wrong() {
        let known = ["min-scale", "max-scale", "httpGet", "path", "EBB_LINK_PORT", "EBB_ADMIN_PORT"];
        for (written, name, is_same_words) in [
            ("minScale", "min-scale", true),
            ("min_scale", "min-scale", true),
            ("min-scal", "min-scale", false),
            ("httpget", "httpGet", true),
            ("paht", "path", false),
            ("EBB_LINKPORT", "EBB_LINK_PORT", true),
        ] {
            assert_eq!(nearest(written, known), Some(LikelyName { name, is_same_words }), "{written}");
        }
        for stranger in ["", "x", "timeout", "a-name-that-nobody-knows"] {
            assert_eq!(nearest(stranger, known), None, "{stranger}");
        }
    }

    #[test]
    fn a_name_of_any_length_is_compared_in_no_time() {
        assert_eq!(nearest(&"x".repeat(1 << 20), ["min-scale"]), None);
        assert!(likeness("autoscaling.knative.de", "autoscaling.knative.dev") > 0.9);
    }
}
