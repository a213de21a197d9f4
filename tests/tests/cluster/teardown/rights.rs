//! Does each of ebb's programs have the rights that it uses, and no others? The requests of all suites are in
//! the API server's audit log.

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;
use tests::cluster::{SYSTEM, audit_log, in_namespace};

/// Each has roles whose names begin with its own, in the namespace, the cluster or both.
const PROGRAMS: [&str; 3] = ["autoscaler", "activator", "injector"];
/// What the suites need not ask for, and why it is given all the same: program, resource, verb.
const UNUSED: [(&str, &str, &str); 6] = [
    // Asked for by admission of OpenShift alone.
    ("autoscaler", "endpointslices/restricted", "create"),
    ("autoscaler", "endpoints/restricted", "create"),
    // Read only when another client wrote a count at that moment; shown before a server that fails on demand
    // (`a_foreign_count_is_kept_and_an_event_names_it` in platform-kubernetes).
    ("autoscaler", "deployments/scale", "get"),
    ("autoscaler", "statefulsets/scale", "get"),
    ("autoscaler", "replicasets/scale", "get"),
    ("autoscaler", "replicationcontrollers/scale", "get"),
];

/// A request, as it is in the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    program: String,
    group: String,
    /// The resource, with its subresource where there is one.
    resource: String,
    name: String,
    verb: String,
    is_refused: bool,
}

impl Request {
    /// `None` for what is no resource, and so is open to all (versions, health).
    fn read(line: &str) -> Option<Self> {
        let entry: Value = serde_json::from_str(line).expect("the log has one object a line");
        let about = entry.get("objectRef")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let user = text(&entry["user"]["username"]);
        let resource = match about["subresource"].as_str() {
            Some(subresource) => format!("{}/{subresource}", text(&about["resource"])),
            None => text(&about["resource"]),
        };
        Some(Self {
            program: user.rsplit(':').next().unwrap_or_default().to_owned(),
            group: text(&about["apiGroup"]),
            resource,
            name: text(&about["name"]),
            verb: text(&entry["verb"]),
            // By its rights: admission refuses with the same status what comes too late, in a namespace that
            // ends.
            is_refused: entry["annotations"]["authorization.k8s.io/decision"] == "forbid",
        })
    }

    fn is_allowed_by(&self, rule: &PolicyRule) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|known| known == "*" || known == word);
        let names = rule.resource_names.as_deref().unwrap_or_default();
        has(&rule.verbs, &self.verb)
            && has(rule.api_groups.as_deref().unwrap_or_default(), &self.group)
            && has(rule.resources.as_deref().unwrap_or_default(), &self.resource)
            && (names.is_empty() || names.contains(&self.name))
    }
}

/// Names in a rule of which no verb was used.
fn unused_names<'r>(rule: &'r PolicyRule, used: &[&Request]) -> Vec<&'r str> {
    let is_used =
        |name: &&String| used.iter().any(|request| request.name == **name && request.is_allowed_by(rule));
    let names = rule.resource_names.iter().flatten();
    names.filter(|name| !is_used(name)).map(String::as_str).collect()
}

/// Each resource of a rule with some verb, and each verb with some resource, that was not asked for.
fn unused<'r>(rule: &'r PolicyRule, used: &[&Request]) -> Vec<(&'r str, &'r str)> {
    let resources: Vec<&str> = rule.resources.iter().flatten().map(String::as_str).collect();
    let of_rule: Vec<&&Request> = used.iter().filter(|request| request.is_allowed_by(rule)).collect();
    let is_asked = |resource: &str| {
        resource == "*" && !of_rule.is_empty() || of_rule.iter().any(|request| request.resource == resource)
    };
    let is_done = |verb: &str| of_rule.iter().any(|request| request.verb == verb);
    let verbs = || rule.verbs.iter().map(String::as_str);
    let of_resources = resources.iter().filter(|resource| !is_asked(resource));
    let of_resources = of_resources.flat_map(|&resource| verbs().map(move |verb| (resource, verb)));
    let of_verbs = verbs().filter(|verb| !is_done(verb));
    let of_verbs = of_verbs.flat_map(|verb| resources.iter().map(move |&resource| (resource, verb)));
    let mut unused: Vec<_> = of_resources.chain(of_verbs).collect();
    unused.sort_unstable();
    unused.dedup();
    unused
}

#[test]
fn each_program_has_the_rights_that_the_suites_used_and_no_others() {
    in_namespace("rights", async |namespace| {
        let log = audit_log();
        let requests: BTreeSet<Request> = log.lines().filter_map(Request::read).collect();
        let ours = ListParams::default().labels("app.kubernetes.io/name=ebb");
        let everywhere = Api::<ClusterRole>::all(namespace.client.clone()).list(&ours).await;
        let at_home = Api::<Role>::namespaced(namespace.client.clone(), SYSTEM).list(&ours).await;
        let everywhere = everywhere.expect("roles can be listed").items.into_iter();
        let at_home = at_home.expect("roles can be listed").items.into_iter();
        let roles: Vec<(String, Vec<PolicyRule>)> = everywhere
            .map(|role| (role.metadata.name, role.rules))
            .chain(at_home.map(|role| (role.metadata.name, role.rules)))
            .map(|(name, rules)| (name.unwrap_or_default(), rules.unwrap_or_default()))
            .collect();
        let mut found = BTreeSet::new();
        for program in PROGRAMS {
            let used: Vec<&Request> = requests.iter().filter(|request| request.program == program).collect();
            let is_own = |name: &str| name.starts_with(&format!("ebb-{program}"));
            let own = roles.iter().filter(|(name, _)| is_own(name));
            let granted: Vec<&PolicyRule> = own.flat_map(|(_, rules)| rules).collect();
            // An API server that has just started may not know yet what it allows.
            let is_missing = |request: &&&Request| {
                request.is_refused && !granted.iter().any(|rule| request.is_allowed_by(rule))
            };
            let missing: Vec<&&Request> = used.iter().filter(is_missing).collect();
            assert!(missing.is_empty(), "a right is missing: {missing:#?}");
            for rule in granted {
                let names = unused_names(rule, &used);
                assert!(names.is_empty(), "{program} has rights about {names:?} that nobody used");
                let unused = unused(rule, &used).into_iter();
                found.extend(unused.map(|(resource, verb)| (program, resource.to_owned(), verb.to_owned())));
            }
        }
        let known = UNUSED.map(|(program, resource, verb)| (program, resource.to_owned(), verb.to_owned()));
        let found: Vec<_> = found.difference(&BTreeSet::from(known)).cloned().collect();
        assert!(found.is_empty(), "rights that nobody used: {found:?}");
    });
}
