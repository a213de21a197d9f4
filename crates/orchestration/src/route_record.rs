//! What is known of a revision's route: what was ordered, what is written, and what may still be in force.

use serde::{Deserialize, Serialize};
use vocabulary::ReplicaName;

use crate::facts::RouteInForce;
use crate::order_outcome::OrderId;

/// What is known of the written route.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RouteRecord {
    /// What was ordered last, if anything, and by which order.
    pub(crate) ordered: Option<(OrderId, RouteInForce)>,
    /// What is written, if that is known.
    pub(crate) written: Option<RouteInForce>,
    /// What was ordered after that and given up for a later order. Each may stand, whole or in part, until
    /// the last one is written.
    passed_over: Vec<RouteInForce>,
    /// What another owner had written, as far as each order since has left it.
    pub(crate) inherited: Option<RouteInForce>,
    /// Why the platform does not write what was ordered last.
    pub(crate) trouble: Option<String>,
}

impl RouteRecord {
    /// Whether the written route, or one that may be written any moment, names an activator.
    pub(crate) fn may_name(&self, activator: &ReplicaName) -> bool {
        let ordered = self.ordered.as_ref().map(|(_, route)| route);
        let known = [ordered, self.written.as_ref()].into_iter().flatten();
        known.chain(&self.passed_over).any(|route| route.activators.contains(activator))
    }

    /// Whether a route is in force that another owner has written, and none was ordered since.
    pub(crate) fn is_inherited(&self) -> bool {
        self.ordered.is_none() && self.written.is_some()
    }

    /// A route is in force that is not of our making.
    pub(crate) fn note_found(&mut self, route: RouteInForce) {
        // Once we have ordered one, the outcome of that says what is written; what is found may be from
        // before.
        if self.ordered.is_none() {
            self.inherited = Some(route.clone());
            self.written = Some(route);
        }
    }

    /// Notes the order of another route, and keeps the former one while that may still be written.
    pub(crate) fn order(&mut self, order: OrderId, route: RouteInForce) {
        // The trouble was about a route that is not wanted any more.
        self.trouble = None;
        self.inherited = self.inherited.take().filter(|inherited| inherited.routing == route.routing);
        if let Some(inherited) = &mut self.inherited {
            // An activator that comes back later may be another process of that name, which knows nothing.
            inherited.activators.retain(|name| route.activators.contains(name));
        }
        let former = self.ordered.replace((order, route)).map(|(_, route)| route);
        // A platform that cannot write now may order the same few again and again.
        self.passed_over.extend(
            former.filter(|route| self.written.as_ref() != Some(route) && !self.passed_over.contains(route)),
        );
    }

    /// An order is carried out. Whether it is the last one.
    pub(crate) fn note_written(&mut self, order: OrderId) -> bool {
        // An earlier one may be in force until the last one is, and proves nothing: it is about to be
        // replaced.
        let Some((_, route)) = self.ordered.as_ref().filter(|(latest, _)| *latest == order) else {
            return false;
        };
        self.written = Some(route.clone());
        self.passed_over.clear();
        self.trouble = None;
        true
    }

    /// An order is not carried out, as far as is known.
    pub(crate) fn note_trouble(&mut self, order: OrderId, text: String) {
        if self.ordered.as_ref().is_some_and(|(latest, _)| *latest == order) {
            self.trouble = Some(text);
        }
    }

    /// What is to be written in the end, as far as was ordered.
    pub(crate) fn latest(&self) -> Option<&RouteInForce> {
        self.ordered.as_ref().map(|(_, route)| route).or(self.written.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::Routing;

    use super::*;

    #[test]
    fn a_route_that_was_given_up_for_another_keeps_its_activators_until_that_one_is_written() {
        let route = |name: &str| RouteInForce {
            routing: Routing::ThroughActivator,
            activators: vec![ReplicaName::new(name)],
        };
        let mut record = RouteRecord { written: Some(route("a")), ..RouteRecord::default() };
        let [first, last] = [OrderId(1), OrderId(2)];
        record.order(first, route("b"));
        record.order(last, route("c"));
        // The first was carried out before the platform heard of the last, and says so late.
        assert!(!record.note_written(first));
        for name in ["a", "b", "c"] {
            assert!(record.may_name(&ReplicaName::new(name)), "slices may name {name}");
        }
        // Nor is its trouble that of the last one, which ends when that is written.
        record.note_trouble(first, "too slow".to_owned());
        assert_eq!(record.trouble, None);
        record.note_trouble(last, "forbidden".to_owned());
        assert_eq!(record.trouble.as_deref(), Some("forbidden"));
        assert!(record.note_written(last));
        assert_eq!(record.trouble, None);
        let named = ["a", "b", "c"].map(|name| record.may_name(&ReplicaName::new(name)));
        assert_eq!(named, [false, false, true]);
    }
}
