//! Which columns fit?
//!
//! A reader of the table wants one line for each revision. Where a terminal is too narrow for all columns,
//! those that matter least are left out first, and only then is the last column, a sentence, cut short.

use autoscaler::api_types::RevisionSummary;
use vocabulary::PodCount;

use super::reason::reason;
use super::values::{first_hop, number};
use crate::output;

/// The number of spaces between two columns.
const GAP: usize = 2;
/// As many characters of the words that end a line are worth more than another column.
const REASON_MIN: usize = 40;

/// One column of the table of revisions.
struct Column {
    heading: &'static str,
    /// In a narrow terminal columns are left out by this number, the greatest first; 0: never.
    dispensable: u8,
    cell: fn(&RevisionSummary) -> String,
}

/// On a cluster a Service has no URL of ebb's, so this column is shown for this machine alone.
const URL: &str = "URL";
/// In a terminal it is shown where at least one revision has metrics of class hpa.
const METRICS: &str = "METRICS";

/// All columns, in the order in which they are shown.
const COLUMNS: [Column; 13] = [
    Column { heading: "NAME", dispensable: 0, cell: name },
    Column { heading: "READY", dispensable: 0, cell: ready },
    Column { heading: URL, dispensable: 3, cell: |now| now.url.clone().unwrap_or_else(|| "-".to_owned()) },
    Column {
        heading: METRICS,
        dispensable: 2,
        cell: |now| now.metrics.clone().unwrap_or_else(|| "-".to_owned()),
    },
    Column { heading: "WAITING", dispensable: 4, cell: |now| now.waiting.to_string() },
    Column { heading: "MODE", dispensable: 5, cell: |now| now.mode.clone() },
    Column { heading: "SERVES", dispensable: 6, cell: |now| first_hop(now.routing).to_owned() },
    Column { heading: "STABLE", dispensable: 7, cell: |now| number(now.stable_value) },
    Column { heading: "TARGET", dispensable: 8, cell: |now| number(Some(now.target_per_pod)) },
    Column { heading: "PANIC", dispensable: 10, cell: |now| number(now.panic_value) },
    Column { heading: "DESIRED", dispensable: 9, cell: desired },
    Column { heading: OWNER, dispensable: 11, cell: owner },
    Column { heading: "REASON", dispensable: 0, cell: reason },
];

/// In a terminal it is shown where there are several.
const OWNER: &str = "OWNER";

/// Most Services are in the default namespace, so they are shown by their name alone.
fn name(now: &RevisionSummary) -> String {
    let name = &now.name;
    match (name.namespace(), name.kind()) {
        ("default", "service") => name.name().to_owned(),
        (namespace, "service") => format!("{namespace}/{}", name.name()),
        _ => name.to_string(),
    }
}

/// "2/3", and how many of those that are asked for the load does not call for yet.
fn ready(now: &RevisionSummary) -> String {
    let RevisionSummary { ready_pods, wanted, early_pods, .. } = now;
    if *early_pods == PodCount::ZERO {
        format!("{ready_pods}/{wanted}")
    } else {
        format!("{ready_pods}/{wanted} ({early_pods} early)")
    }
}

fn desired(now: &RevisionSummary) -> String {
    now.desired.map_or_else(|| "-".to_owned(), |desired| desired.to_string())
}

fn owner(now: &RevisionSummary) -> String {
    now.owner.as_ref().map_or_else(|| "-".to_owned(), |owner| owner.name.clone())
}

fn has_several_owners(revisions: &[RevisionSummary]) -> bool {
    revisions.iter().filter_map(|now| now.owner.as_ref()).any(|owner| owner.buckets > 1)
}

/// The place where the revisions of a table live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RevisionPlace {
    #[default]
    Machine,
    Cluster,
}

/// Which columns a table has. One that is drawn again loses those for which there is no room any more, and
/// gets none back, so that none comes and goes under the eyes of its reader; another width chooses anew.
#[derive(Debug, Default)]
pub(super) struct ColumnChoice {
    place: RevisionPlace,
    width: usize,
    shown: Vec<usize>,
    /// Whether there were revisions to choose by.
    is_settled: bool,
}

impl ColumnChoice {
    /// The choice before a table is drawn.
    pub(super) fn at(place: RevisionPlace) -> Self {
        Self { place, ..Self::default() }
    }

    /// The columns of these cells in at most `width` characters a line.
    fn follow(&mut self, revisions: &[RevisionSummary], cells: &[Vec<String>], width: usize) -> &[usize] {
        let is_same = self.is_settled && self.width == width;
        let offered = if is_same {
            std::mem::take(&mut self.shown)
        } else {
            (0..COLUMNS.len()).filter(|&index| self.is_offered(&COLUMNS[index], revisions, width)).collect()
        };
        self.shown = choose(offered, &widths(cells), width);
        (self.width, self.is_settled) = (width, is_same || !revisions.is_empty());
        &self.shown
    }

    /// Where lines may be of any length, a program may read them, and each column of the place is there for
    /// good.
    fn is_offered(&self, column: &Column, revisions: &[RevisionSummary], width: usize) -> bool {
        match column.heading {
            URL => self.place == RevisionPlace::Machine,
            _ if width == usize::MAX => true,
            METRICS => revisions.iter().any(|now| now.metrics.is_some()),
            OWNER => has_several_owners(revisions),
            _ => true,
        }
    }
}

/// The table in at most `width` characters a line.
pub(super) fn table(revisions: &[RevisionSummary], width: usize, choice: &mut ColumnChoice) -> String {
    let cells: Vec<Vec<String>> =
        revisions.iter().map(|now| COLUMNS.iter().map(|column| (column.cell)(now)).collect()).collect();
    let shown = choice.follow(revisions, &cells, width);
    let headings: Vec<&str> = shown.iter().map(|&index| COLUMNS[index].heading).collect();
    let mut table = output::table(&headings);
    for row in cells {
        table.add_row(shown.iter().map(|&index| row[index].clone()));
    }
    let cut = |line: &str| output::cut(line.trim_end(), width);
    table.to_string().lines().map(cut).collect::<Vec<_>>().join("\n")
}

/// How wide each column would be.
fn widths(cells: &[Vec<String>]) -> Vec<usize> {
    let length = |text: &str| text.chars().count();
    let of_column = |(index, column): (usize, &Column)| {
        let cells = cells.iter().map(|row| length(&row[index]));
        cells.chain([length(column.heading)]).max().unwrap_or_default()
    };
    COLUMNS.iter().enumerate().map(of_column).collect()
}

/// The columns of `shown` that fit into `width`.
fn choose(mut shown: Vec<usize>, widths: &[usize], width: usize) -> Vec<usize> {
    let needed = |shown: &[usize]| {
        let least = |index: usize| {
            if index + 1 == COLUMNS.len() { widths[index].min(REASON_MIN) } else { widths[index] }
        };
        shown.iter().map(|&index| least(index) + GAP).sum::<usize>()
    };
    while needed(&shown) > width.saturating_add(GAP) {
        let Some(&dropped) = shown.iter().max_by_key(|&&index| COLUMNS[index].dispensable) else { break };
        if COLUMNS[dropped].dispensable == 0 {
            break;
        }
        shown.retain(|&index| index != dropped);
    }
    shown
}

#[cfg(test)]
pub(crate) mod tests {
    use autoscaler::api_types::OwnerView;
    use vocabulary::{RevisionName, Routing};

    use super::*;

    pub(crate) fn summary(name: &str) -> RevisionSummary {
        RevisionSummary {
            name: RevisionName::parse(name).expect("a name"),
            template: "hello-00001".to_owned(),
            url: Some("http://autoscale-go.localhost:8080".to_owned()),
            wanted: PodCount::new(8),
            early_pods: PodCount::ZERO,
            prediction: None,
            desired: Some(PodCount::new(8)),
            ready_pods: PodCount::new(8),
            not_ready_pods: PodCount::ZERO,
            pending_pods: PodCount::ZERO,
            awaiting_core_pods: PodCount::ZERO,
            terminating_pods: PodCount::ZERO,
            mode: "stable".to_owned(),
            class: "kpa".to_owned(),
            metrics: None,
            other_autoscaler: None,
            shadow: None,
            left_alone: None,
            metric: "concurrency".to_owned(),
            stable_value: Some(49.873_22),
            panic_value: Some(50.0),
            target_per_pod: 7.0,
            routing: Routing::ThroughActivator,
            waiting: 0,
            activity: "active".to_owned(),
            last_reason: String::new(),
            why_not_zero: None,
            why_not_ready: None,
            links: None,
            owner: Some(OwnerView { name: "autoscaler-2".to_owned(), bucket: 1, buckets: 1, epoch: 3 }),
        }
    }

    #[test]
    fn pods_that_are_asked_for_early_are_counted() {
        let early = RevisionSummary { early_pods: PodCount::new(2), ..summary("default/service/hello") };
        assert!(drawn(&[early], 200).contains("8/8 (2 early)"));
    }

    /// A table that was not drawn before.
    fn drawn(revisions: &[RevisionSummary], width: usize) -> String {
        table(revisions, width, &mut ColumnChoice::default())
    }

    #[test]
    fn a_cluster_has_no_column_of_urls() {
        let revisions = [RevisionSummary { url: None, ..summary("shop/deployment/hello") }];
        for width in [200, usize::MAX] {
            let of = |place| table(&revisions, width, &mut ColumnChoice::at(place));
            assert!(!of(RevisionPlace::Cluster).contains(URL) && of(RevisionPlace::Machine).contains(URL));
        }
    }

    #[test]
    fn a_column_does_not_come_and_go_while_a_table_is_drawn_again() {
        let mut choice = ColumnChoice::default();
        let heading = |table: &str| table.lines().next().unwrap_or_default().to_owned();
        assert!(table(&[], 120, &mut choice).contains("REASON"));
        let usual = summary("default/service/a");
        let first = table(std::slice::from_ref(&usual), 120, &mut choice);
        let mut grown = summary("default/service/a-name-that-needs-the-room-of-two-columns-and-more");
        grown.metrics = Some("cpu 45%/80%".to_owned());
        let second = table(std::slice::from_ref(&grown), 120, &mut choice);
        let words = |table: &str| heading(table).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (before, after) = (words(&first), words(&second));
        assert!(after.len() < before.len() && after.iter().all(|word| before.contains(word)), "{after:?}");
        assert!(after.contains(&"REASON".to_owned()), "{second}");
        let third = table(&[usual], 120, &mut choice);
        assert_eq!(words(&third), after, "none comes back");
        assert!(words(&table(&[grown], 400, &mut choice)).contains(&METRICS.to_owned()), "another width");
    }

    #[test]
    fn a_narrow_terminal_shows_what_matters_most_and_no_line_is_longer() {
        let mut troubled = summary("shop/service/checkout");
        troubled.why_not_ready = Some("pod checkout-00001-0007: ".to_owned() + &"words ".repeat(40));
        let revisions = [summary("default/service/autoscale-go"), troubled];
        for width in [40, 60, 80, 100, 132, 200] {
            let table = drawn(&revisions, width);
            assert!(table.lines().all(|line| line.chars().count() <= width), "{width}:\n{table}");
            assert!(table.contains("autoscale-go") && table.contains("shop/checkout"), "{table}");
            assert!(table.contains("8/8") && table.contains("REASON"), "{table}");
            assert_eq!(table.contains("URL"), width >= 100, "{width}:\n{table}");
            assert_eq!(table.contains("DESIRED"), width >= 200, "{width}:\n{table}");
        }
        assert!(
            drawn(&revisions[..1], 80).contains("http://autoscale-go.localhost:8080"),
            "short words leave room"
        );
        assert!(drawn(&revisions, usize::MAX).contains("49.87"), "numbers are rounded");
        assert!(!drawn(&revisions, 400).contains("autoscaler-2"), "a single owner is not worth a column");
        let program = drawn(&revisions, usize::MAX);
        assert!(
            program.contains(OWNER) && program.contains(METRICS),
            "a program finds each column: {program}"
        );
        assert!(program.contains("words ".repeat(40).trim_end()), "no sentence is cut: {program}");
        let shared = revisions.map(|mut revision| {
            if let Some(owner) = &mut revision.owner {
                owner.buckets = 2;
            }
            revision
        });
        assert!(drawn(&shared, 400).contains("autoscaler-2"), "one of several is");
    }
}
