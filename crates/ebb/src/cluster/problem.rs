//! Which object is a problem about that the autoscaler of a cluster tells? All problems stand in one list.
//! One about an object begins with `KIND NAMESPACE/NAME: `; one about the settings of all does not.

use vocabulary::RevisionName;

/// The object that a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProblemSubject<'p> {
    /// `Service`, or a workload's kind as it stands in `ebb.dev/revision`.
    pub(crate) kind: &'p str,
    pub(crate) namespace: &'p str,
    pub(crate) name: &'p str,
    /// The problem itself, and what to do about it.
    pub(crate) text: &'p str,
}

impl<'p> ProblemSubject<'p> {
    /// `None` for what is no object's.
    pub(crate) fn of(problem: &'p str) -> Option<Self> {
        let (kind, rest) = problem.split_once(' ')?;
        let (object, text) = rest.split_once(": ")?;
        let (namespace, name) = object.split_once('/')?;
        // A namespace has no dot, so `annotation ebb.dev/timeout: ` is none.
        let is_plain = |word: &str| !word.is_empty() && !word.contains([' ', '/']);
        (is_plain(namespace) && is_plain(name) && !namespace.contains('.')).then_some(Self {
            kind,
            namespace,
            name,
            text,
        })
    }

    pub(crate) fn is(&self, revision: &RevisionName) -> bool {
        (self.kind, self.namespace, self.name) == (revision.kind(), revision.namespace(), revision.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_whose_it_is_unless_it_is_everybodys() {
        let of =
            |problem| ProblemSubject::of(problem).map(|one| (one.kind, one.namespace, one.name, one.text));
        let paused = "deployment shop/hello: annotation ebb.dev/paused is \"true\"";
        let text = "annotation ebb.dev/paused is \"true\"";
        assert_eq!(of(paused), Some(("deployment", "shop", "hello", text)));
        assert_eq!(of("Service a/b: it: is"), Some(("Service", "a", "b", "it: is")));
        for nobodys in [
            "key stable-window of ConfigMap config-autoscaler is \"soon\"",
            "annotation ebb.dev/timeout: no unit",
            "ConfigMap config-observability: tracing-protocol is \"grpc\"",
            "",
        ] {
            assert_eq!(of(nobodys), None, "{nobodys}");
        }
    }
}
