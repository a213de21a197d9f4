//! The parts of `ebb up` that can be rebuilt, and their names.

/// A part of `ebb up` that can be rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The control loop; counts and traffic stay as they are meanwhile.
    Autoscaler,
    /// The proxy before the pods; the new one is ready before the old one stops.
    Activator,
}

impl Part {
    /// The part with this name; `None` if there is none. A Service of such a name is meant by `service/NAME`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Autoscaler, Self::Activator].into_iter().find(|part| part.name() == name)
    }

    /// The name in commands, in paths of the API and in the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Autoscaler => "autoscaler",
            Self::Activator => "activator",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_meant_by_its_name_alone() {
        assert_eq!(Part::named("autoscaler"), Some(Part::Autoscaler));
        assert_eq!(Part::named("activator"), Some(Part::Activator));
        assert_eq!(Part::named("service/activator"), None);
        assert_eq!(Part::named("hello"), None);
    }
}
