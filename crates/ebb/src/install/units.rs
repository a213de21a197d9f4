//! What do the units say?

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dataplane::CertificateFiles;

use super::scope::ServiceScope;
use crate::cli::TokenGroup;
use crate::up::TLS_LISTEN_OPTION;

/// With this a file of ours begins: any other is left alone.
pub(super) const MARK: &str = "# Written by `ebb install`";

const SERVICE: &str = "ebb.service";
const SOCKET: &str = "ebb.socket";
/// All of them, in the order in which they are started.
pub(super) const NAMES: [&str; 2] = [SOCKET, SERVICE];

/// One file.
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

/// Both units.
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

/// The order matters: `ebb up` takes the first for requests, the second for its API, the third for requests
/// over TLS. They stand in one unit because systemd keeps the order within one, and only there.
fn socket(facts: &UnitFacts) -> String {
    let UnitFacts { listen, api, tls, .. } = facts;
    let tls = tls.as_ref().map_or_else(String::new, |tls| format!("ListenStream={}\n", tls.listen));
    format!(
        "{MARK}; `ebb install` writes it again, `ebb install --uninstall` removes it.
[Unit]
Description=Sockets of ebb: connections wait here while it restarts

[Socket]
ListenStream={listen}
ListenStream={api}
{tls}Backlog=4096

[Install]
WantedBy=sockets.target
"
    )
}

fn service(facts: &UnitFacts) -> String {
    let mut start = quoted(&facts.executable);
    let _ = write!(start, " up --listen {} --api {}", facts.listen, facts.api);
    if let Some(tls) = &facts.tls {
        start += &options_of(tls);
    }
    if let Some(group) = &facts.token_group {
        let _ = write!(start, " --token-group {}", group.number);
    }
    for word in &facts.given_to_up {
        let _ = write!(start, " {}", quoted(word));
    }
    let groups = groups_of(facts);
    for file in &facts.files {
        let _ = write!(start, " -f {}", quoted(file));
    }
    let conditions = match facts.starts {
        StartCondition::Always => String::new(),
        StartCondition::OnceThereAreManifests => conditions(&facts.files),
    };
    let (rights, target) = match facts.manager {
        ServiceScope::User => (String::new(), "default.target"),
        ServiceScope::System => (rights_of(facts.run_as.as_deref()), "multi-user.target"),
    };
    format!(
        "{MARK}; `ebb install` writes it again, `ebb install --uninstall` removes it.
[Unit]
Description=ebb: Services that are scaled with their traffic
Documentation=man:ebb(1) https://github.com/ebb-dev/ebb
Requires={SOCKET}
After={SOCKET} network.target
{conditions}
[Service]
Type=notify
# Whoever takes over says so itself.
NotifyAccess=all
ExecStart={start}
# A take-over by what the executable is by then: no connection is refused, no pod ends.
ExecReload=/bin/kill -USR2 $MAINPID
Restart=on-failure
RestartSec=1s
# It says that it lives while every part of it does. Longer than a take-over stands still.
WatchdogSec=90s
# Pods end in order by themselves; requests may take long.
KillMode=mixed
TimeoutStopSec=1h
RuntimeDirectory=ebb
# Apps have the first number, as they expect; ebb itself goes up to the second.
LimitNOFILE=1024:524288
# Limits of memory and CPU in manifests are kept by control groups below this service's.
Delegate=yes

# What apps are not expected to need. Left out on purpose: MemoryDenyWriteExecute (languages that compile as they run), SystemCallFilter,
# PrivateTmp, PrivateDevices.
NoNewPrivileges=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
{rights}{groups}
[Install]
WantedBy={target}
"
    )
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
fn groups_of(facts: &UnitFacts) -> String {
    let mut numbers: BTreeSet<u32> = facts.tls.iter().flat_map(|tls| tls.groups.iter().copied()).collect();
    // The manager of one user's services can put nobody into a group.
    numbers.extend(
        facts.token_group.iter().filter(|_| facts.manager == ServiceScope::System).map(|group| group.number),
    );
    let groups: Vec<String> = numbers.iter().map(u32::to_string).collect();
    if groups.is_empty() { String::new() } else { format!("SupplementaryGroups={}\n", groups.join(" ")) }
}

/// One of them is enough.
fn conditions(directories: &[PathBuf]) -> String {
    let of_one = |directory: &PathBuf| {
        ["yaml", "yml", "json"]
            .map(|kind| format!("ConditionPathExistsGlob=|{}/*.{kind}\n", directory.display()))
            .concat()
    };
    directories.iter().map(of_one).collect::<Vec<_>>().concat()
}

/// Of a service of the machine.
fn rights_of(run_as: Option<&str>) -> String {
    let whose = match run_as {
        Some(user) => format!("User={user}\nProtectSystem=full\nStateDirectory=ebb\n"),
        // Made up for as long as it runs; implies a system that is read-only but for the directory.
        None => "DynamicUser=yes\nStateDirectory=ebb\n".to_owned(),
    };
    let kernel = "\
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
";
    whose + kernel
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

    #[test]
    fn paths_mean_themselves_whatever_is_in_them() {
        let word = quoted(Path::new(r#"/a b/100%/$HOME/"x"\y"#));
        assert_eq!(word, r#""/a b/100%%/$$HOME/\"x\"\\y""#);
    }
}
