//! Which address stands in which slice, and in which order are slices written?
//!
//! An address stays in the slice that names it already, so that one pod more or less is one write however
//! many there are. And after each single write every address is named that is named before and after all
//! writes, and every port has an endpoint that has one before and after: the next write may fail, and a pod,
//! or a port, that no slice names meanwhile would lose requests.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};

use super::belonging::{name_prefix, service_of};

/// The endpoints that Kubernetes' own controller puts into one slice, so that a change of one pod is one
/// small write.
const ENDPOINTS_MAX: usize = 100;

/// Addresses of one family that serve at the same ports.
pub(super) struct EndpointGroup<'a> {
    pub(super) family: &'a str,
    pub(super) ports: Vec<EndpointPort>,
    pub(super) endpoints: Vec<Endpoint>,
}

/// A slice that is to be.
pub(super) struct PlannedSlice {
    pub(super) name: String,
    pub(super) family: String,
    pub(super) ports: Vec<EndpointPort>,
    pub(super) endpoints: Vec<Endpoint>,
}

/// Gives each group its slices: those with its ports first, then those that no group needs as they are, then
/// new ones.
pub(super) fn lay_out(
    groups: Vec<EndpointGroup<'_>>,
    prefix: &str,
    present: &[&EndpointSlice],
) -> Vec<PlannedSlice> {
    let mut free = present.to_vec();
    let (mut planned, mut homeless) = (Vec::new(), Vec::new());
    for EndpointGroup { family, ports, endpoints } in groups {
        let has_same_ports = |slice: &mut &EndpointSlice| {
            slice.address_type == family && slice.ports.as_deref().unwrap_or_default() == ports
        };
        let matching: Vec<&EndpointSlice> = free.extract_if(.., has_same_ports).collect();
        // A group without endpoints has one slice.
        let mut wants_one = endpoints.is_empty();
        let (settled, rest) = settle(&matching, endpoints);
        for (slice, endpoints) in matching.iter().copied().zip(settled) {
            if endpoints.is_empty() && !std::mem::take(&mut wants_one) {
                free.push(slice);
                continue;
            }
            let (name, family) = (name_of(slice).to_owned(), family.to_owned());
            planned.push(PlannedSlice { name, family, ports: ports.clone(), endpoints });
        }
        let chunks = rest.chunks(ENDPOINTS_MAX).map(<[Endpoint]>::to_vec);
        let chunks = chunks.chain(wants_one.then(Vec::new));
        homeless.extend(chunks.map(|endpoints| EndpointGroup { family, ports: ports.clone(), endpoints }));
    }
    let mut names = Names::of(prefix, present);
    for EndpointGroup { family, ports, endpoints } in homeless {
        // One write instead of two, and at no moment is there neither slice.
        let reused = free.iter().position(|slice| slice.address_type == family).map(|at| free.remove(at));
        let name = reused.map_or_else(|| names.next(family), |slice| name_of(slice).to_owned());
        planned.push(PlannedSlice { name, family: family.to_owned(), ports, endpoints });
    }
    planned
}

/// What each slice that has the right ports keeps and gets, and the endpoints that find no room in any. A new
/// endpoint goes where something is written anyway.
fn settle(matching: &[&EndpointSlice], endpoints: Vec<Endpoint>) -> (Vec<Vec<Endpoint>>, Vec<Endpoint>) {
    let numbered = endpoints.into_iter().enumerate();
    let mut wanted: BTreeMap<_, _> =
        numbered.map(|(place, endpoint)| (identity(&endpoint), (place, endpoint))).collect();
    let mut kept: Vec<Vec<Endpoint>> = Vec::new();
    for slice in matching {
        let staying = slice.endpoints.iter().filter_map(|endpoint| wanted.remove(&identity(endpoint)));
        kept.push(staying.map(|(_, endpoint)| endpoint).collect());
    }
    let mut rest: Vec<_> = wanted.into_values().collect();
    rest.sort_by_key(|(place, _)| *place);
    let mut rest = rest.into_iter().map(|(_, endpoint)| endpoint);
    let mut rooms: Vec<_> = matching.iter().zip(&mut kept).collect();
    rooms.sort_by_key(|(slice, kept)| slice.endpoints == **kept);
    for (_, kept) in rooms {
        let room = ENDPOINTS_MAX.saturating_sub(kept.len());
        kept.extend(rest.by_ref().take(room));
    }
    (kept, rest.collect())
}

/// By which an address is known again.
fn identity(endpoint: &Endpoint) -> (Option<String>, Option<String>) {
    let uid = endpoint.target_ref.as_ref().and_then(|pod| pod.uid.clone());
    (uid, endpoint.addresses.first().cloned())
}

fn name_of(slice: &EndpointSlice) -> &str {
    slice.metadata.name.as_deref().unwrap_or_default()
}

/// Names that no slice of a Service has.
struct Names {
    prefix: String,
    taken: BTreeSet<String>,
}

impl Names {
    fn of(prefix: &str, slices: &[&EndpointSlice]) -> Self {
        let taken = slices.iter().map(|slice| name_of(slice).to_owned()).collect();
        Self { prefix: prefix.to_owned(), taken }
    }

    fn next(&mut self, family: &str) -> String {
        let prefix = format!("{}{}-", self.prefix, family.to_lowercase());
        let mut number = 0_usize;
        // As many as there are slices are tried, and one more.
        while !self.taken.insert(format!("{prefix}{number}")) {
            number += 1;
        }
        format!("{prefix}{number}")
    }
}

/// A write that brings what is there nearer to what should be.
#[derive(Clone, Debug, PartialEq)]
pub enum SliceChange {
    /// A slice that is not there yet.
    Create(EndpointSlice),
    /// With the version that was read, so that a later one is not overwritten.
    Replace(EndpointSlice),
    /// The version that was read, and no later one.
    Delete(EndpointSlice),
}

/// The writes to be done, in this order; none, if each slice is as it should be.
pub(crate) fn changes(desired: &[EndpointSlice], present: &[&EndpointSlice]) -> Vec<SliceChange> {
    let mut steps = steps(desired, present);
    let mut book = ServerBook::new(desired, present);
    let service = desired.first().and_then(service_of);
    let mut names = service.map(|service| {
        let all: Vec<&EndpointSlice> = present.iter().copied().chain(desired).collect();
        Names::of(&name_prefix(&service.name), &all)
    });
    let mut changes = Vec::new();
    while let Some(first) = steps.first().copied() {
        if let Some(place) = steps.iter().position(|step| book.allows(*step)) {
            let step = steps.remove(place);
            book.take(step);
            changes.extend(step.change());
            continue;
        }
        // Slices that exchange what they name wait for each other. What the first of them is to be is made
        // under another name then, after which it may go.
        steps.remove(0);
        book.take(SliceStep { former: None, next: first.next });
        if let Some((next, names)) = first.next.zip(names.as_mut()) {
            changes.push(SliceChange::Create(renamed(next, names.next(&next.address_type))));
            steps.push(SliceStep { former: first.former, next: None });
        }
    }
    changes
}

/// One slice, before and after a write.
#[derive(Clone, Copy)]
struct SliceStep<'a> {
    former: Option<&'a EndpointSlice>,
    next: Option<&'a EndpointSlice>,
}

impl SliceStep<'_> {
    fn change(self) -> Option<SliceChange> {
        match (self.former, self.next) {
            (None, Some(next)) => Some(SliceChange::Create(next.clone())),
            (Some(former), Some(next)) => {
                let mut next = next.clone();
                next.metadata.resource_version.clone_from(&former.metadata.resource_version);
                Some(SliceChange::Replace(next))
            }
            (Some(former), None) => Some(SliceChange::Delete(former.clone())),
            (None, None) => None,
        }
    }

    /// Writes that add an address go before writes that take one out.
    fn rank(self) -> u8 {
        match (self.former, self.next) {
            (None, _) => 0,
            (Some(former), Some(next)) => {
                let next: BTreeSet<_> = servers(next).collect();
                if servers(former).all(|server| next.contains(&server)) { 1 } else { 2 }
            }
            (Some(_), None) => 3,
        }
    }
}

fn steps<'a>(desired: &'a [EndpointSlice], present: &[&'a EndpointSlice]) -> Vec<SliceStep<'a>> {
    let by_name: BTreeMap<&str, &EndpointSlice> =
        present.iter().map(|slice| (name_of(slice), *slice)).collect();
    let needed: BTreeSet<&str> = desired.iter().map(name_of).collect();
    let written = desired.iter().filter_map(|next| {
        let former = by_name.get(name_of(next)).copied();
        let is_done = former.is_some_and(|former| says_the_same(former, next));
        (!is_done).then_some(SliceStep { former, next: Some(next) })
    });
    let superfluous = by_name.values().filter(|slice| !needed.contains(name_of(slice)));
    let mut steps: Vec<SliceStep<'_>> = written.collect();
    steps.extend(superfluous.map(|slice| SliceStep { former: Some(slice), next: None }));
    steps.sort_by_key(|step| step.rank());
    steps
}

/// A port of a Service, in one family of addresses.
type NamedPort<'a> = (&'a str, Option<&'a str>);
/// An address with the port at which it serves.
type NamedServer<'a> = (NamedPort<'a>, Option<i32>, &'a str);

fn servers(slice: &EndpointSlice) -> impl Iterator<Item = NamedServer<'_>> {
    slice.ports.iter().flatten().flat_map(|port| {
        let named = (slice.address_type.as_str(), port.name.as_deref());
        let addresses = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
        addresses.map(move |address| (named, port.port, address.as_str()))
    })
}

/// How many slices name each address and port, while slices are written one by one.
struct ServerBook<'a> {
    servers: BTreeMap<NamedServer<'a>, usize>,
    ports: BTreeMap<NamedPort<'a>, usize>,
    /// The addresses that slices are to name in the end.
    wanted: BTreeSet<NamedServer<'a>>,
    wanted_ports: BTreeSet<NamedPort<'a>>,
}

impl<'a> ServerBook<'a> {
    fn new(desired: &'a [EndpointSlice], present: &[&'a EndpointSlice]) -> Self {
        let wanted: BTreeSet<_> = desired.iter().flat_map(servers).collect();
        let wanted_ports = wanted.iter().map(|(port, _, _)| *port).collect();
        let mut book = Self { servers: BTreeMap::new(), ports: BTreeMap::new(), wanted, wanted_ports };
        for slice in present {
            book.take(SliceStep { former: None, next: Some(slice) });
        }
        book
    }

    /// Whether after this step a slice still names each address that stays, and each port.
    fn allows(&self, step: SliceStep<'a>) -> bool {
        let Some(former) = step.former else { return true };
        let next: BTreeSet<_> = step.next.into_iter().flat_map(servers).collect();
        let mut named = BTreeMap::<NamedPort<'_>, usize>::new();
        for (port, _, _) in &next {
            *named.entry(*port).or_default() += 1;
        }
        let mut gone = BTreeMap::<NamedPort<'_>, usize>::new();
        let mut keeps_all = true;
        for server in servers(former) {
            *gone.entry(server.0).or_default() += 1;
            let is_last = self.servers.get(&server) == Some(&1) && !next.contains(&server);
            keeps_all &= !(is_last && self.wanted.contains(&server));
        }
        let keeps_port = |(port, gone): (&NamedPort<'_>, &usize)| {
            let others = self.ports.get(port).copied().unwrap_or_default().saturating_sub(*gone);
            others + named.get(port).copied().unwrap_or_default() > 0 || !self.wanted_ports.contains(port)
        };
        keeps_all && gone.iter().all(keeps_port)
    }

    fn take(&mut self, step: SliceStep<'a>) {
        for server in step.next.into_iter().flat_map(servers) {
            *self.servers.entry(server).or_default() += 1;
            *self.ports.entry(server.0).or_default() += 1;
        }
        for server in step.former.into_iter().flat_map(servers) {
            let counts = [self.servers.get_mut(&server), self.ports.get_mut(&server.0)];
            for count in counts.into_iter().flatten() {
                *count = count.saturating_sub(1);
            }
        }
    }
}

fn renamed(slice: &EndpointSlice, name: String) -> EndpointSlice {
    let mut slice = slice.clone();
    slice.metadata.name = Some(name);
    slice
}

/// Whether a slice is as it should be; additions of the API server and of other clients do not count.
fn says_the_same(there: &EndpointSlice, wanted: &EndpointSlice) -> bool {
    let has_all = |there: &Option<BTreeMap<String, String>>, wanted: &Option<BTreeMap<String, String>>| {
        let there = there.as_ref();
        wanted.iter().flatten().all(|(key, value)| there.and_then(|map| map.get(key)) == Some(value))
    };
    // An empty list comes back as none.
    let ports = |slice: &EndpointSlice| slice.ports.clone().unwrap_or_default();
    there.endpoints == wanted.endpoints
        && ports(there) == ports(wanted)
        && has_all(&there.metadata.labels, &wanted.metadata.labels)
        && has_all(&there.metadata.annotations, &wanted.metadata.annotations)
        && there.metadata.owner_references == wanted.metadata.owner_references
}
