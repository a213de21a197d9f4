//! Which route has each revision, and was it ordered here?

use orchestration::RouteInForce;
use vocabulary::RevisionName;

use super::Services;

impl Services {
    /// The route of a revision, as it was ordered last or found on slices.
    pub(in crate::index) fn route(&self, revision: &RevisionName) -> Option<&RouteInForce> {
        self.routes.get(revision)
    }

    pub(in crate::index) fn routes(&self) -> impl Iterator<Item = (&RevisionName, &RouteInForce)> {
        self.routes.iter()
    }

    /// The route of a revision from now on, as it was ordered.
    pub(in crate::index) fn set_route(&mut self, revision: &RevisionName, route: RouteInForce) {
        self.routes.insert(revision.clone(), route);
        self.ordered_routes.insert(revision.clone());
    }

    /// Whether the present owner has ordered a revision's route here.
    pub(in crate::index) fn is_route_ordered(&self, revision: &RevisionName) -> bool {
        self.ordered_routes.contains(revision)
    }

    /// The route of a revision as slices say it; returns whether that is news.
    pub(in crate::index) fn put_found_route(&mut self, revision: &RevisionName, found: RouteInForce) -> bool {
        let is_news = self.routes.get(revision) != Some(&found);
        if is_news {
            self.routes.insert(revision.clone(), found);
        }
        is_news
    }

    /// A revision has no route any more.
    pub(in crate::index) fn drop_route(&mut self, revision: &RevisionName) {
        self.routes.remove(revision);
        self.ordered_routes.remove(revision);
    }

    /// Routes of these revisions were ordered by an owner of before; returns those that were ordered.
    pub(in crate::index) fn take_ordered(
        &mut self,
        theirs: impl Fn(&RevisionName) -> bool,
    ) -> Vec<RevisionName> {
        self.ordered_routes.extract_if(.., |revision| theirs(revision)).collect()
    }
}
