//! Does the app listen on the port that it was given (`$PORT`)? If not, where does it listen?
//!
//! An app that ignores `$PORT` never gets ready, and "connection refused" does not tell a person why. The
//! kernel knows: `/proc/net/tcp` has the sockets that listen, and `/proc/PID/fd` which of them are the app's.
//! That is read only while the app does not listen where it should, and less and less often.
//!
//! Of the container of an image only its port is looked at: its sockets are an engine's. In a network of its
//! own it listens on the port of its manifest, and the engine on `$PORT`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use nix::unistd::Pid;
use vocabulary::Timestamp;

use super::PodSpec;
use super::descendants::descendants_of;
use crate::images::ImageNetwork;

/// How long an app may take before it is looked where else it listens: most listen sooner.
const PATIENCE: Duration = Duration::from_secs(3);
/// The wait between the first two looks; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait between two looks.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// More addresses than these tell a person nothing.
const ADDRESSES_SHOWN: usize = 3;
/// The state of a socket that listens, in hexadecimal as the kernel writes it.
const LISTEN: &str = "0A";

/// What a look at the app's sockets has shown that was not told yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PortNews {
    /// The app listens on other ports alone; which, as a sentence.
    Elsewhere(String),
    /// What was told before holds no more.
    Over,
}

/// Looks where an app listens, until it listens on the port that it was given.
#[derive(Debug)]
pub(super) struct PortWatch {
    /// The process of the app; `None` for a container, whose processes are not ours.
    app: Option<Pid>,
    port: u16,
    /// When to look again; [`Timestamp::MAX`] once the app listens on its port.
    due: Timestamp,
    wait: Duration,
    /// The text that was told last.
    told: Option<String>,
}

impl PortWatch {
    /// Watches over an app that was started now, by its process, and is to listen on `port`.
    pub(super) fn of_app(spec: &PodSpec, app: Pid, port: u16, now: Timestamp) -> Self {
        let watch = Self::new(app, port, now);
        if !spec.template.has_image() {
            return watch;
        }
        let is_in_host_network =
            spec.images.as_ref().is_some_and(|images| images.network == ImageNetwork::Host);
        Self { app: None, due: if is_in_host_network { watch.due } else { Timestamp::MAX }, ..watch }
    }

    fn new(app: Pid, port: u16, now: Timestamp) -> Self {
        Self { app: Some(app), port, due: now + PATIENCE, wait: FIRST_WAIT, told: None }
    }

    /// When [`PortWatch::news`] looks the next time.
    pub(super) fn next_deadline(&self) -> Timestamp {
        self.due
    }

    /// Looks if it is time to, and returns what is new.
    pub(super) fn news(&mut self, now: Timestamp) -> Option<PortNews> {
        if self.due > now {
            return None;
        }
        let listening = listening_sockets();
        // By whichever process: a reverse proxy that the app started is the app.
        if listening.values().any(|address| address.port() == self.port) {
            self.due = Timestamp::MAX;
            return self.told.take().map(|_| PortNews::Over);
        }
        self.due = now + self.wait;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        let text = match self.app {
            Some(app) => elsewhere(&addresses_of(app, &listening), self.port),
            None => Some(unheard(self.port)),
        };
        if text == self.told {
            return None;
        }
        self.told.clone_from(&text);
        Some(text.map_or(PortNews::Over, PortNews::Elsewhere))
    }
}

/// The addresses on which a process and those below it listen.
fn addresses_of(app: Pid, listening: &BTreeMap<u64, SocketAddr>) -> BTreeSet<SocketAddr> {
    let family = descendants_of(app).into_iter().chain([app]);
    let sockets: BTreeSet<u64> = family.flat_map(sockets_of).collect();
    listening.iter().filter(|(inode, _)| sockets.contains(inode)).map(|(_, address)| *address).collect()
}

/// What is told of a container in the network of the host.
fn unheard(port: u16) -> String {
    format!(
        "nothing listens on $PORT ({port}); the container is in the network of the host, where its program must \
         listen on $PORT"
    )
}

/// "it listens on 127.0.0.1:23555, not on $PORT (29783)"; `None` if it listens nowhere.
fn elsewhere(addresses: &BTreeSet<SocketAddr>, port: u16) -> Option<String> {
    let shown: Vec<String> = addresses.iter().take(ADDRESSES_SHOWN).map(ToString::to_string).collect();
    (!shown.is_empty()).then(|| format!("it listens on {}, not on $PORT ({port})", shown.join(" and ")))
}

/// The sockets of this machine that listen, by inode.
fn listening_sockets() -> BTreeMap<u64, SocketAddr> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines().filter_map(listening_socket)).collect()
}

/// A line of `/proc/net/tcp` or `/proc/net/tcp6`, if it is of a socket that listens.
fn listening_socket(line: &str) -> Option<(u64, SocketAddr)> {
    /// Where the inode stands (`proc_net_tcp(5)`).
    const INODE: usize = 9;
    let fields: Vec<&str> = line.split_ascii_whitespace().take(INODE + 1).collect();
    if *fields.get(3)? != LISTEN {
        return None;
    }
    let (address, port) = fields.get(1)?.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((fields.get(INODE)?.parse().ok()?, SocketAddr::new(address_of(address)?, port)))
}

/// The kernel prints the words of an address as numbers of this machine, while their bytes are in the order
/// of the network.
fn address_of(hexadecimal: &str) -> Option<IpAddr> {
    let word = |index: usize| {
        let digits = hexadecimal.get(index * 8..index * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match hexadecimal.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (index, place) in bytes.chunks_exact_mut(4).enumerate() {
                place.copy_from_slice(&word(index)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// The inodes of the sockets that a process holds open; none if it is gone.
fn sockets_of(process: Pid) -> Vec<u64> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    links
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const START: Timestamp = Timestamp::from_secs(3600);

    fn after(seconds: u64) -> Timestamp {
        START + Duration::from_secs(seconds)
    }

    #[test]
    fn lines_of_both_tables_are_understood_and_others_passed_over() {
        let little = cfg!(target_endian = "little");
        let (v4, v6) = if little {
            ("0100007F", "00000000000000000000000001000000")
        } else {
            ("7F000001", "00000000000000000000000000000001")
        };
        let line = |address: &str, state: &str| {
            format!(
                "   0: {address}:5C03 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000 0 31415 1 x"
            )
        };
        let found = |address: &str| Some((31415, address.parse().expect("an address")));
        assert_eq!(listening_socket(&line(v4, "0A")), found("127.0.0.1:23555"));
        assert_eq!(listening_socket(&line(v6, "0A")), found("[::1]:23555"));
        assert_eq!(listening_socket(&line(v4, "01")), None, "an open connection");
        assert_eq!(listening_socket("  sl  local_address rem_address   st tx_queue"), None);
        assert_eq!(listening_socket(&line("7F", "0A")), None);
    }

    #[test]
    fn the_text_names_the_addresses_and_the_port() {
        let set = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("an address")).collect();
        assert_eq!(elsewhere(&BTreeSet::new(), 29_783), None);
        assert_eq!(
            elsewhere(&set(&["127.0.0.1:23555"]), 29_783).as_deref(),
            Some("it listens on 127.0.0.1:23555, not on $PORT (29783)")
        );
        assert!(unheard(29_783).starts_with("nothing listens on $PORT (29783); "));
        let two = elsewhere(&set(&["0.0.0.0:3000", "[::]:3001"]), 29_783);
        assert_eq!(two.as_deref(), Some("it listens on 0.0.0.0:3000 and [::]:3001, not on $PORT (29783)"));
    }

    /// On this very process, which listens as an app would.
    #[test]
    fn an_app_that_listens_elsewhere_is_told_of_once() {
        let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a free port");
        // No test listens on this one.
        let mut watch = PortWatch::new(Pid::this(), 1, START);
        assert_eq!(watch.news(after(2)), None, "most apps listen sooner");
        let Some(PortNews::Elsewhere(told)) = watch.news(after(3)) else { panic!("it listens elsewhere") };
        assert!(told.starts_with("it listens on ") && told.ends_with(", not on $PORT (1)"), "{told}");
        assert_eq!(watch.next_deadline(), after(4));
        let port = elsewhere.local_addr().expect("it is bound").port();
        let mut reached = PortWatch::new(Pid::this(), port, START);
        assert_eq!((reached.news(after(3)), reached.next_deadline()), (None, Timestamp::MAX));
    }
}
