//! What the autoscaler told this queue-proxy over the link.

use std::cell::{Cell, RefCell};

use http::HeaderMap;
use vocabulary::{HopKey, Routing};

use dataplane::names;

/// The latest settings. Before the first link nobody is trusted and clients stay where they are.
pub(crate) struct Settings {
    routing: Cell<Routing>,
    hop_keys: RefCell<Vec<HopKey>>,
}

impl Settings {
    pub(crate) fn new() -> Self {
        Self { routing: Cell::new(Routing::Direct), hop_keys: RefCell::default() }
    }

    pub(crate) fn set(&self, routing: Routing, hop_keys: Vec<HopKey>) {
        self.routing.set(routing);
        self.hop_keys.replace(hop_keys);
    }

    pub(crate) fn routing(&self) -> Routing {
        self.routing.get()
    }

    /// Whether a request proves that one of our own hops sent it.
    pub(crate) fn is_vouched_for(&self, headers: &HeaderMap) -> bool {
        let Some(given) = headers.get(names::EBB_HOP_KEY) else { return false };
        self.hop_keys.borrow().iter().any(|key| is_same(key.expose().as_bytes(), given.as_bytes()))
    }
}

/// Takes the same time wherever the first difference is, so that a key cannot be guessed byte by byte.
fn is_same(key: &[u8], given: &[u8]) -> bool {
    key.len() == given.len() && key.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_present_and_the_previous_key_are_proof_and_nothing_else() {
        let settings = Settings::new();
        let vouched = |key: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(names::EBB_HOP_KEY, HeaderValue::from_static(key));
            settings.is_vouched_for(&headers)
        };
        assert!(!vouched("new") && !vouched(""), "nobody is trusted before the first link");
        let keys = ["new", "old"].map(|key| HopKey::new(key.to_owned()));
        settings.set(Routing::ThroughActivator, keys.to_vec());
        assert!(vouched("new") && vouched("old"));
        assert!(!vouched("ne") && !vouched("newer") && !vouched("nex") && !vouched(""));
        assert!(!settings.is_vouched_for(&HeaderMap::new()));
    }
}
