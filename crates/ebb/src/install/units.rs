//! What do the units say?

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dataplane::CertificateFiles;

use super::scope::ServiceScope;
use super::template;
use crate::cli::TokenGroup;
use crate::up::TLS_LISTEN_OPTION;

/// With this a file of ours begins: any other is left alone.
pub(super) const MARK: &str = "# Written by `ebb install`";

const SERVICE: &str = "ebb.service";
const SERVICE_TEMPLATE: &str = include_str!("ebb.service.template");
const SOCKET: &str = "ebb.socket";
const SOCKET_TEMPLATE: &str = include_str!("ebb.socket.template");
/// All of them, in the order in which they are started.
pub(super) const NAMES: [&str; 2] = [SOCKET, SERVICE];

/// One unit: the name of its file and its text.
#[derive(Debug)]
pub(super) struct UnitFile {
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// What differs from one machine to the next.
#[derive(Debug)]
pub(super) struct UnitFacts {
    pub(super) manager: ServiceScope,
    pub(super) executable: PathBuf,
    pub(super) files: Vec<PathBuf>,
    pub(super) listen: SocketAddr,
    pub(super) api: SocketAddr,
    pub(super) tls: Option<TlsFacts>,
    pub(super) run_as: Option<String>,
    /// May read the API's token.
    pub(super) token_group: Option<TokenGroup>,
    /// Further options of `ebb up`.
    pub(super) given_to_up: Vec<String>,
    pub(super) starts: StartCondition,
}

/// TLS where requests are taken.
#[derive(Debug)]
pub(super) struct TlsFacts {
    pub(super) listen: SocketAddr,
    pub(super) certificates: Vec<CertificateFiles>,
    /// The numbers of the groups that the service needs to be in to read them.
    pub(super) groups: BTreeSet<u32>,
}

/// When the service can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartCondition {
    Always,
    /// `ebb up` refuses a directory without a manifest, which is what a package brings.
    OnceThereAreManifests,
}

/// The unit of the sockets and that of the service.
pub(super) fn all(facts: &UnitFacts) -> [UnitFile; 2] {
    [UnitFile { name: SOCKET, text: socket(facts) }, UnitFile { name: SERVICE, text: service(facts) }]
}

/// The links by which `systemctl enable` remembers them.
pub(super) fn enabled_in(directory: &Path) -> Vec<PathBuf> {
    let links = [
        "sockets.target.wants/ebb.socket",
        "multi-user.target.wants/ebb.service",
        "default.target.wants/ebb.service",
    ];
    links.iter().map(|link| directory.join(link)).collect()
}

/// The order of the sockets matters: `ebb up` takes the first for requests, the second for its API, the third
/// for requests over TLS. They stand in one unit because systemd keeps the order within one, and only there.
fn socket(facts: &UnitFacts) -> String {
    let places = [
        ("address of requests", vec![facts.listen.to_string()]),
        ("address of the API", vec![facts.api.to_string()]),
        ("address of requests over TLS", facts.tls.iter().map(|tls| tls.listen.to_string()).collect()),
    ];
    template::filled(SOCKET_TEMPLATE, &places)
}

fn service(facts: &UnitFacts) -> String {
    let conditions = match facts.starts {
        StartCondition::Always => Vec::new(),
        StartCondition::OnceThereAreManifests => manifests_in(&facts.files),
    };
    let is_for_machine = facts.manager == ServiceScope::System;
    let target = if is_for_machine { "multi-user.target" } else { "default.target" };
    let user = facts.run_as.as_ref().filter(|_| is_for_machine);
    // An empty text lets the lines of its place stand.
    let with_named_user = user.map(|_| String::new());
    // Made up for as long as the service runs; implies a system that is read-only but for its directory.
    let with_made_up_user = (is_for_machine && user.is_none()).then(String::new);
    let on_machine = is_for_machine.then(String::new);
    let places = [
        ("manifests of which one must be there", conditions),
        ("command", vec![command(facts)]),
        ("named user", Vec::from_iter(user.cloned())),
        ("with a named user", Vec::from_iter(with_named_user)),
        ("with a user made up by systemd", Vec::from_iter(with_made_up_user)),
        ("on the machine", Vec::from_iter(on_machine)),
        ("numbers of groups", groups_of(facts)),
        ("target", vec![target.to_owned()]),
    ];
    template::filled(SERVICE_TEMPLATE, &places)
}

/// The command line of the service.
fn command(facts: &UnitFacts) -> String {
    let mut command = quoted(&facts.executable);
    let _ = write!(command, " up --listen {} --api {}", facts.listen, facts.api);
    if let Some(tls) = &facts.tls {
        command += &options_of(tls);
    }
    if let Some(group) = &facts.token_group {
        let _ = write!(command, " --token-group {}", group.number);
    }
    for word in &facts.given_to_up {
        let _ = write!(command, " {}", quoted(word));
    }
    for file in &facts.files {
        let _ = write!(command, " -f {}", quoted(file));
    }
    command
}

fn options_of(tls: &TlsFacts) -> String {
    let mut options = format!(" {TLS_LISTEN_OPTION} {}", tls.listen);
    for CertificateFiles { certificate, key } in &tls.certificates {
        let _ = write!(options, " --tls-cert {} --tls-key {}", quoted(certificate), quoted(key));
    }
    if tls.certificates.is_empty() {
        options += " --tls dev";
    }
    options
}

/// The service reads keys without being their owner, and gives the file with its token to a group.
fn groups_of(facts: &UnitFacts) -> Vec<String> {
    let mut numbers: BTreeSet<u32> = facts.tls.iter().flat_map(|tls| tls.groups.iter().copied()).collect();
    // The manager of one user's services can put no process into a group.
    numbers.extend(
        facts.token_group.iter().filter(|_| facts.manager == ServiceScope::System).map(|group| group.number),
    );
    let groups: Vec<String> = numbers.iter().map(u32::to_string).collect();
    if groups.is_empty() { groups } else { vec![groups.join(" ")] }
}

/// Patterns of the manifests in these directories; one manifest is enough.
fn manifests_in(directories: &[PathBuf]) -> Vec<String> {
    let of_one =
        |directory: &PathBuf| ["yaml", "yml", "json"].map(|kind| format!("{}/*.{kind}", directory.display()));
    directories.iter().flat_map(of_one).collect()
}

/// A word of a command line as systemd reads it.
fn quoted(word: impl AsRef<OsStr>) -> String {
    let mut text = String::from("\"");
    for character in word.as_ref().to_string_lossy().chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '%' | '$' => text.extend([character, character]),
            other => text.push(other),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket_address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    /// A service of the machine, for the manifests in `/srv/m`.
    fn of_machine() -> UnitFacts {
        UnitFacts {
            manager: ServiceScope::System,
            executable: "/opt/ebb/bin/ebb".into(),
            files: vec!["/srv/m".into()],
            listen: socket_address("127.0.0.1:8080"),
            api: socket_address("127.0.0.1:9000"),
            tls: None,
            run_as: None,
            token_group: None,
            given_to_up: Vec::new(),
            starts: StartCondition::Always,
        }
    }

    fn tls(listen: &str, certificates: Vec<CertificateFiles>, groups: BTreeSet<u32>) -> TlsFacts {
        TlsFacts { listen: socket_address(listen), certificates, groups }
    }

    fn group(number: u32) -> TokenGroup {
        TokenGroup { name: number.to_string(), number }
    }

    #[test]
    fn units_of_each_kind_of_service_are_as_they_always_were() {
        let certificate = CertificateFiles { certificate: "/srv/c.pem".into(), key: "/srv/k.pem".into() };
        let with_certificate = UnitFacts {
            tls: Some(tls("127.0.0.1:8443", vec![certificate], BTreeSet::from([4321]))),
            given_to_up: vec!["--shadow".to_owned()],
            ..of_machine()
        };
        let run_as =
            UnitFacts { run_as: Some("daemon".to_owned()), token_group: Some(group(1)), ..of_machine() };
        let of_user = UnitFacts {
            manager: ServiceScope::User,
            listen: socket_address("0.0.0.0:80"),
            tls: Some(tls("0.0.0.0:8443", Vec::new(), BTreeSet::new())),
            token_group: Some(group(4321)),
            given_to_up: vec!["--log=debug".to_owned()],
            ..of_machine()
        };
        let of_package = UnitFacts {
            executable: "/usr/bin/ebb".into(),
            files: vec!["/etc/ebb".into()],
            starts: StartCondition::OnceThereAreManifests,
            ..of_machine()
        };
        for (facts, expected) in [
            (with_certificate, include_str!("testdata/machine.txt")),
            (run_as, include_str!("testdata/machine-run-as.txt")),
            (of_user, include_str!("testdata/user.txt")),
            (of_package, include_str!("testdata/package.txt")),
        ] {
            let written: String = all(&facts).into_iter().map(|unit| unit.text).collect();
            assert_eq!(written, expected);
            assert!(all(&facts).iter().all(|unit| unit.text.starts_with(MARK)), "an uninstall finds its own");
        }
    }

    #[test]
    fn paths_mean_themselves_whatever_is_in_them() {
        let word = quoted(Path::new(r#"/a b/100%/$HOME/"x"\y"#));
        assert_eq!(word, r#""/a b/100%%/$$HOME/\"x\"\\y""#);
    }
}
