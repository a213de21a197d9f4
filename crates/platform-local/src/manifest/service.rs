//! A Knative `ManifestService`, as far as it means something on one machine.

use std::collections::BTreeMap;
use std::time::Duration;

use runtime::Observability;
use settings::{
    ANNOTATION_PREFIXES, CLASS_ANNOTATION, ClusterConfig, HOSTS_ANNOTATION, PROGRESS_DEADLINE_ANNOTATION,
    PROGRESS_DEADLINE_DEFAULT, RevisionSettings, SeparateDocument, misplaced_annotations, progress_deadline,
};
use vocabulary::{Problem, RevisionName, WaitingPage};

use crate::images::ImageSupport;
use crate::manifest::autoscalers::{Autoscalers, PlacedAutoscaler};
use crate::manifest::container::ContainerSources;
use crate::manifest::data::{DEFAULT_NAMESPACE, DataDocuments};
use crate::manifest::env::VariableSources;
use crate::manifest::fields::{ManifestFields, Report, WRITTEN_BY_SERVERS};
use crate::manifest::image::ImagePlace;
use crate::manifest::own_hosts::{DomainMappings, PlacedHost, read_annotation};
use crate::manifest::pod;
use crate::manifest::waiting_page;
use crate::manifest::yaml::{TextPlace, YamlKey, YamlNode, YamlValue};
use crate::pod::Template;

/// One Knative Service whose whole document was found good.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ManifestService {
    /// The name of the revision: `NAMESPACE/service/NAME`.
    pub(crate) name: RevisionName,
    /// The host of its requests: `NAME.NAMESPACE.DOMAIN`.
    pub(crate) host: String,
    /// Further hosts, of its annotation `ebb.dev/hosts` and of documents of kind `DomainMapping`: names, and
    /// `*.` before one.
    pub(crate) own_hosts: Vec<String>,
    /// What a browser is shown while it would wait for a pod.
    pub(crate) waiting_page: WaitingPage,
    /// What the autoscaling annotations of its template say.
    pub(crate) settings: RevisionSettings,
    /// Whether `ebb up --shadow` puts every Service in shadow that does not say otherwise.
    pub(crate) is_in_shadow: bool,
    /// How long a pod may take to get ready.
    pub(crate) progress_deadline: Duration,
    /// What its pods run: a change of it starts new pods.
    pub(crate) template: Template,
}

/// Every name below this one means this machine, for browsers and curl without any set-up (RFC 6761).
const LOCAL_DOMAIN: &str = "localhost";

impl ManifestService {
    /// Under which it is reached: its host, names that need no set-up on this machine, and its own hosts.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let mut hosts = self.hosts_by_name();
        let own = self.own_hosts.iter().filter(|host| !hosts.contains(*host)).cloned().collect::<Vec<_>>();
        hosts.extend(own);
        hosts
    }

    /// The hosts that follow from its name.
    pub(crate) fn hosts_by_name(&self) -> Vec<String> {
        let (name, namespace) = (self.name.name(), self.name.namespace());
        let mut hosts = vec![self.host.clone()];
        let short = (namespace == DEFAULT_NAMESPACE).then(|| format!("{name}.{LOCAL_DOMAIN}"));
        for host in short.into_iter().chain([format!("{name}.{namespace}.{LOCAL_DOMAIN}")]) {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }
}

/// What the text of a Service is read with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    /// Limits that annotations are checked against.
    pub(crate) cluster: &'a ClusterConfig,
    /// Which logs, metrics and traces queue-proxies write about each request.
    pub(crate) observability: &'a Observability,
    /// What follows `NAME.NAMESPACE.` in its host.
    pub(crate) domain: &'a str,
    /// The documents of class hpa in the files.
    pub(crate) autoscalers: &'a Autoscalers,
    /// The documents that give hosts to Services.
    pub(crate) mappings: &'a DomainMappings,
    /// The documents from which environment variables may be taken.
    pub(crate) data: &'a DataDocuments,
    /// Whether a Service is in shadow that does not say otherwise.
    pub(crate) is_in_shadow: bool,
    /// Annotations of its template that come before those in its file.
    pub(crate) annotations: &'a BTreeMap<String, String>,
    /// Whether its container may be an image.
    pub(crate) images: ImageSupport,
}

/// The settings and documents with which a Service's template is read.
#[derive(Clone, Copy, Debug)]
struct Owner<'a> {
    cluster: &'a ClusterConfig,
    observability: &'a Observability,
    autoscaler: Option<&'a PlacedAutoscaler>,
    sources: ContainerSources<'a>,
    annotations: &'a BTreeMap<String, String>,
}

/// The Service's name, if so much of the document can be read.
pub(crate) fn name_of(document: &YamlNode) -> Option<RevisionName> {
    let metadata = document.field("metadata")?;
    let namespace = metadata.field("namespace").and_then(YamlNode::text).unwrap_or(DEFAULT_NAMESPACE);
    RevisionName::new(namespace, "service", metadata.field("name")?.text()?).ok()
}

/// Reads a document of kind `Service`, with the hosts that its annotation and other documents give it. `None`
/// if anything in it was refused.
pub(crate) fn read(
    document: &YamlNode,
    around: Surroundings<'_>,
    report: &mut Report,
) -> Option<(ManifestService, Vec<PlacedHost>)> {
    let refused_before = report.refusals();
    let mut fields = ManifestFields::of(document, "", report)?;
    fields.ignore(&["apiVersion", "kind", "status"]);
    let (name, mut own_hosts) = metadata(&mut fields, report);
    let autoscaler = name.as_ref().and_then(|name| around.autoscalers.of(name));
    let namespace = name.as_ref().map_or(DEFAULT_NAMESPACE, RevisionName::namespace);
    let owner = Owner {
        cluster: around.cluster,
        observability: around.observability,
        autoscaler,
        sources: ContainerSources {
            variables: VariableSources { namespace, documents: around.data },
            images: ImagePlace::Alone(around.images),
        },
        annotations: around.annotations,
    };
    let template = if let Some(spec) = fields.mapping("spec", report) {
        read_spec(spec, owner, report)
    } else {
        report.refuse(fields.place, "spec is missing: nothing says what to run");
        None
    };
    fields.finish(&[], report);
    let (name, (template, settings, progress_deadline)) = (name?, template?);
    let host = format!("{}.{}.{}", name.name(), name.namespace(), around.domain.to_lowercase());
    own_hosts.extend(around.mappings.of(&name).iter().cloned());
    let waiting_page = waiting_page::read(settings.waiting_page.as_ref(), document.place, report);
    let service = ManifestService {
        name,
        host,
        own_hosts: own_hosts.iter().map(|placed| placed.host.clone()).collect(),
        waiting_page,
        settings,
        is_in_shadow: around.is_in_shadow,
        progress_deadline,
        template,
    };
    (report.refusals() == refused_before).then_some((service, own_hosts))
}

/// The name of a Service, and the hosts of its annotation.
fn metadata(
    document: &mut ManifestFields<'_>,
    report: &mut Report,
) -> (Option<RevisionName>, Vec<PlacedHost>) {
    let Some(mut fields) = document.mapping("metadata", report) else {
        report.refuse(document.place, "metadata is missing: the Service needs a name");
        return (None, Vec::new());
    };
    fields.ignore(WRITTEN_BY_SERVERS);
    let name = fields.label("name", report);
    if fields.take("name").is_none() {
        report.refuse(fields.place, "metadata.name is missing");
    }
    let namespace = fields.label("namespace", report);
    fields.text_map("labels", report);
    let annotations = fields.text_map("annotations", report);
    let (of_hosts, others) = hosts_and_others(annotations);
    let hosts =
        of_hosts.into_iter().flat_map(|(key, text)| read_annotation(text, key.place, report)).collect();
    refuse_all(misplaced_annotations(&as_map(&others)), &others, report);
    fields.finish(&[("generateName", "give it a name")], report);
    let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
    (name.and_then(|name| RevisionName::new(namespace, "service", name).ok()), hosts)
}

type AnnotationEntries<'n> = Vec<(&'n YamlKey, &'n str)>;

/// The annotation with the hosts of a Service, if it is there, and all others.
fn hosts_and_others(annotations: AnnotationEntries<'_>) -> (AnnotationEntries<'_>, AnnotationEntries<'_>) {
    annotations.into_iter().partition(|(key, _)| key.text == HOSTS_ANNOTATION)
}

/// The annotations of a template without that of hosts, which belongs to the Service and is refused here.
fn without_hosts<'n>(annotations: AnnotationEntries<'n>, report: &mut Report) -> AnnotationEntries<'n> {
    let (of_hosts, others) = hosts_and_others(annotations);
    for (key, _) in of_hosts {
        report.refuse(
            key.place,
            format!("annotation {HOSTS_ANNOTATION} stands on the template, where it has no effect; move it to metadata.annotations of the Service"),
        );
    }
    others
}

type ReadTemplate = (Template, RevisionSettings, Duration);

fn read_spec(mut spec: ManifestFields<'_>, owner: Owner<'_>, report: &mut Report) -> Option<ReadTemplate> {
    traffic(&mut spec, report);
    let template = if let Some(template) = spec.mapping("template", report) {
        Some(read_template(template, owner, report))
    } else {
        report.refuse(spec.place, "spec.template is missing: nothing says what to run");
        None
    };
    spec.finish(&[], report);
    template
}

/// All traffic to the latest revision is what happens anyway; anything else needs several revisions at once.
fn traffic(spec: &mut ManifestFields<'_>, report: &mut Report) {
    let place = spec.take("traffic").map(|node| node.place);
    for (path, item) in spec.list("traffic", report).unwrap_or_default() {
        let Some(mut target) = ManifestFields::of(item, path, report) else { continue };
        target.ignore(&["latestRevision", "percent"]);
        let percent = target.integer("percent", 0..=100, report);
        let latest = target.take("latestRevision").is_none_or(|node| node.value == YamlValue::Bool(true));
        let splits = ["revisionName", "tag", "url", "configurationName"];
        if !latest
            || percent.is_some_and(|percent| percent != 100)
            || splits.iter().any(|name| target.take(name).is_some())
        {
            report.refuse(
                place,
                "spec.traffic is not supported on one machine: all requests go to the \
                 latest template; remove it",
            );
            return;
        }
        target.finish(&[], report);
    }
}

fn read_template(mut fields: ManifestFields<'_>, owner: Owner<'_>, report: &mut Report) -> ReadTemplate {
    // Settings that ask for nothing are left out, so that writing down a default starts no new pods.
    let observability = owner.observability.asks_for_anything().then(|| owner.observability.clone());
    let mut template = Template { observability, ..Template::default() };
    let mut settings = read_settings(&[], owner, &mut Report::about(report.file()));
    let mut deadline = PROGRESS_DEADLINE_DEFAULT;
    if let Some(mut metadata) = fields.mapping("metadata", report) {
        metadata.ignore(WRITTEN_BY_SERVERS);
        metadata.ignore(&["namespace"]);
        template.name = metadata.label("name", report).map(str::to_owned);
        let labels = metadata.text_map("labels", report);
        let annotations = without_hosts(metadata.text_map("annotations", report), report);
        metadata.finish(&[("generateName", "templates are numbered")], report);
        settings = read_settings(&annotations, owner, report);
        deadline = read_progress_deadline(&annotations, report);
        let foreign = annotations.iter().filter(|(key, _)| !applies_live(&key.text));
        template.marks = labels
            .iter()
            .chain(foreign)
            .map(|(key, value)| (key.text.clone(), (*value).to_owned()))
            .collect();
        template.marks.sort();
    } else if !owner.annotations.is_empty() {
        settings = read_settings(&[], owner, report);
    }
    match fields.mapping("spec", report) {
        Some(spec) => {
            let resources = pod::read(spec, owner.sources, &mut template, report);
            settings.requests = resources.requests.clone();
            let spec = settings.resolve(owner.cluster, template.container_concurrency, deadline);
            resources.check(spec.hpa.as_deref(), report);
        }
        None => report
            .refuse(fields.place, format!("{} is missing: nothing says what to run", fields.path_of("spec"))),
    }
    fields.finish(&[], report);
    (template, settings, deadline)
}

/// Annotations that change how a revision is scaled, not what its pods run.
fn applies_live(annotation: &str) -> bool {
    ANNOTATION_PREFIXES.iter().any(|prefix| annotation.starts_with(prefix))
        || annotation == PROGRESS_DEADLINE_ANNOTATION
}

type WrittenAnnotations<'n> = [(&'n YamlKey, &'n str)];

fn as_map(annotations: &WrittenAnnotations<'_>) -> BTreeMap<String, String> {
    annotations.iter().map(|(key, value)| (key.text.clone(), (*value).to_owned())).collect()
}

fn place_of(name: &str, annotations: &WrittenAnnotations<'_>) -> Option<TextPlace> {
    annotations.iter().find(|(key, _)| key.text == name).map(|(key, _)| key.place)
}

fn refuse_all(
    problems: impl IntoIterator<Item = Problem>,
    annotations: &WrittenAnnotations<'_>,
    report: &mut Report,
) {
    for problem in problems {
        report.refuse(place_of(&problem.key, annotations), problem.message);
    }
}

/// What annotations say, and the document of class hpa that they or another document of the files hold.
fn read_settings(
    annotations: &WrittenAnnotations<'_>,
    owner: Owner<'_>,
    report: &mut Report,
) -> RevisionSettings {
    let document = owner
        .autoscaler
        .map(|autoscaler| SeparateDocument { document: &autoscaler.document, title: &autoscaler.title });
    let mut all = as_map(annotations);
    all.extend(owner.annotations.iter().map(|(key, value)| (key.clone(), value.clone())));
    match RevisionSettings::read(&all, owner.cluster, document) {
        Ok(checked) => {
            for warning in checked.warnings {
                report.warn(place_of(&warning.key, annotations), warning.message);
            }
            // A class that the ConfigMap names is refused there, once.
            if checked.value.class.is_some() {
                refuse_all(checked.value.require_class_of_ours(owner.cluster).err(), annotations, report);
            }
            checked.value
        }
        Err(problems) => {
            refuse_all(problems, annotations, report);
            refuse_all(foreign_class(&all, owner.cluster), annotations, report);
            let document = document.map(|separate| Box::new(separate.document.clone()));
            RevisionSettings { document, ..RevisionSettings::default() }
        }
    }
}

/// The problem of a class that nothing here runs, of annotations that are refused for something else: both
/// are told at once.
fn foreign_class(annotations: &BTreeMap<String, String>, cluster: &ClusterConfig) -> Option<Problem> {
    let class = annotations.iter().filter(|(key, _)| *key == CLASS_ANNOTATION);
    let alone = class.map(|(key, value)| (key.clone(), value.clone())).collect();
    let checked = RevisionSettings::read(&alone, cluster, None).ok()?.value;
    checked.class.is_some().then(|| checked.require_class_of_ours(cluster).err()).flatten()
}

fn read_progress_deadline(annotations: &WrittenAnnotations<'_>, report: &mut Report) -> Duration {
    match progress_deadline(&as_map(annotations)) {
        Ok(deadline) => deadline.unwrap_or(PROGRESS_DEADLINE_DEFAULT),
        Err(problem) => {
            refuse_all([problem], annotations, report);
            PROGRESS_DEADLINE_DEFAULT
        }
    }
}
