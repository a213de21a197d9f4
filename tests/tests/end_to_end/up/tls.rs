//! TLS where requests are taken, as curl sees it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tests::client::whole_answer;
use tests::ebb::executable;
use tests::{ConfigMap, Ebb, Service, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);

/// A certificate that signs itself, and its key.
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    key: PathBuf,
}

impl Identity {
    pub(crate) fn new(folder: &Path, name: &str, host: &str) -> Self {
        Self::until(folder, name, host, 4000)
    }

    /// One that expires with the beginning of this year.
    fn until(folder: &Path, name: &str, host: &str, year: i32) -> Self {
        let file = |kind| folder.join(format!("{name}-{kind}.pem"));
        let identity = Self { certificate: file("certificate"), key: file("key") };
        identity.write(host, year);
        identity
    }

    fn write(&self, host: &str, year: i32) {
        let mut parameters = CertificateParams::new([host.to_owned()]).expect("a name");
        parameters.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.self_signed(&key).expect("a certificate");
        std::fs::write(&self.key, key.serialize_pem()).expect("the folder can be written");
        std::fs::write(&self.certificate, certificate.pem()).expect("the folder can be written");
    }

    pub(crate) fn arguments(&self) -> [&str; 4] {
        let [certificate, key] = [&self.certificate, &self.key].map(|path| path.to_str().expect("UTF-8"));
        ["--tls-cert", certificate, "--tls-key", key]
    }
}

/// The options for TLS on a free port.
const ANYWHERE: [&str; 2] = ["--tls-listen", "127.0.0.1:0"];

/// `ebb up` with these certificates, and where it speaks TLS.
async fn up(services: &[Service], identities: &[&Identity]) -> (Ebb, SocketAddr) {
    let identities = identities.iter().flat_map(|identity| identity.arguments());
    let arguments: Vec<&str> = ANYWHERE.into_iter().chain(identities).collect();
    let mut ebb = Ebb::up_with(services, &ConfigMap::short(), &arguments).await;
    let address = ebb.requests_over_tls().await;
    (ebb, address)
}

/// Runs curl for a host that is served there, trusting one certificate; what it prints, or its exit code.
pub(crate) async fn curl(
    at: SocketAddr,
    trusted: &Path,
    host: &str,
    arguments: &[&str],
) -> Result<String, i32> {
    let port = at.port();
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "30", "--noproxy", "*", "--cacert"])
        .arg(trusted)
        .args(["--resolve", &format!("{host}:{port}:127.0.0.1")])
        .args(arguments)
        .arg(format!("https://{host}:{port}/"))
        .output()
        .await
        .expect("curl is missing: apt-get install curl");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(output.status.code().unwrap_or(-1)) }
}

/// Fails unless every page that tells where the service is says this.
async fn assert_url(ebb: &Ebb, url: &str) {
    let list = ebb.json(&["get", "-o", "json"]).await.expect("it answers");
    assert_eq!(list["revisions"][0]["url"], url);
    assert!(ebb.output().contains(&format!("; in a browser {url})")), "{}", ebb.output());
}

/// The exit code of a curl that does not trust the certificate.
const UNTRUSTED: i32 = 60;

#[tokio::test]
async fn both_protocols_are_spoken_within_tls_and_apps_hear_of_it() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let service = Service::new("hello");
    let identity = Identity::new(folder.path(), "hello", &service.host());
    let (ebb, at) = up(std::slice::from_ref(&service), &[&identity]).await;
    assert_url(&ebb, &format!("https://{}:{}", service.host(), at.port())).await;
    for (flag, version, seen) in [("--http2", "2", "HTTP/2.0"), ("--http1.1", "1.1", "HTTP/1.1")] {
        let arguments = [
            flag,
            "--header",
            "X-Forwarded-Proto: http",
            "--write-out",
            "%{http_version} %header{x-version} %header{x-proto}",
        ];
        let said = curl(at, &identity.certificate, &service.host(), &arguments).await;
        assert_eq!(said, Ok(format!("ok\n{version} {seen} https")), "{flag}");
    }
    // A body that is longer than anything on the way holds, there and back.
    let body = vec![b'x'; 3 << 20];
    let file = folder.path().join("body");
    std::fs::write(&file, &body).expect("the folder can be written");
    for flag in ["--http2", "--http1.1"] {
        let data = format!("@{}", file.display());
        let arguments = [flag, "--limit-rate", "20M", "--data-binary", &data];
        let said = curl(at, &identity.certificate, &service.host(), &arguments).await;
        assert!(
            said.as_ref().is_ok_and(|said| said.as_bytes() == body),
            "{flag}: {:?}",
            said.map(|said| said.len())
        );
    }
    // Where no TLS is spoken everything is as before.
    let plain = whole_answer(ebb.requests, &service.host(), "/").await.expect("an answer");
    assert!(plain.starts_with("HTTP/1.1 200") && !plain.contains("x-proto"), "{plain}");
}

#[tokio::test]
async fn the_name_that_a_client_asks_for_chooses_the_certificate() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (one, two) = (Service::new("one"), Service::new("two"));
    let identities =
        [&one, &two].map(|service| Identity::new(folder.path(), service.name(), &service.host()));
    let (_ebb, at) = up(&[one.clone(), two.clone()], &identities.each_ref()).await;
    for (service, own, other) in [(&one, 0, 1), (&two, 1, 0)] {
        let said = curl(at, &identities[own].certificate, &service.host(), &[]).await;
        assert_eq!(said.as_deref(), Ok("ok\n"), "{}", service.name());
        let said = curl(at, &identities[other].certificate, &service.host(), &[]).await;
        assert_eq!(said, Err(UNTRUSTED), "{}", service.name());
    }
}

/// Rows: the name in the handshake (an address is sent as none), the host of the request, and the answer's
/// status. The first certificate covers `two` alone, the second both.
#[tokio::test]
async fn a_host_is_misdirected_only_where_another_certificate_than_the_shown_one_covers_it() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (one, two) = (Service::new("one"), Service::new("two"));
    let own = Identity::new(folder.path(), "two", &two.host());
    let shared = Identity::new(folder.path(), "shared", "*.default.example.com");
    let (_ebb, at) = up(&[one.clone(), two.clone()], &[&own, &shared]).await;
    let (one, two) = (one.host(), two.host());
    for (asked, host, expected) in [
        (&*one, &*one, 200),
        // Another certificate covers it, too, but so does the one that was shown.
        (&one, &two, 200),
        (&two, &two, 200),
        (&two, &one, 421),
        ("127.0.0.1", &two, 200),
        ("127.0.0.1", &one, 421),
        ("other.example", &two, 200),
        ("other.example", &one, 421),
        // No certificate covers it, so another connection would be no better.
        (&two, "one.localhost", 200),
        // Covered by the second certificate, and unknown.
        (&two, "three.default.example.com", 404),
    ] {
        for flag in ["--http2", "--http1.1"] {
            let header = format!("Host: {host}");
            let arguments =
                [flag, "--insecure", "--header", &header, "--write-out", "%{http_version} %{http_code}"];
            let said = curl(at, &own.certificate, asked, &arguments).await.expect("an answer");
            let version = if flag == "--http2" { "2" } else { "1.1" };
            assert!(said.ends_with(&format!("{version} {expected}")), "{asked}, {host}: {said}");
            let text = format!("does not cover the host {host:?}");
            assert_eq!(said.contains(&text), expected == 421, "{asked}, {host}: {said}");
        }
    }
}

#[tokio::test]
async fn a_development_certificate_is_made_once_and_covers_the_services() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let service = Service::new("hello");
    let place = format!("export XDG_STATE_HOME={}", folder.path().display());
    let certificate = folder.path().join("ebb/dev-certificate.pem");
    let mut made = Vec::new();
    for _ in 0..2 {
        let arguments = [&ANYWHERE[..], &["--tls", "dev"]].concat();
        let mut ebb =
            Ebb::up_after_with(&place, std::slice::from_ref(&service), &ConfigMap::short(), &arguments).await;
        let at = ebb.requests_over_tls().await;
        assert_url(&ebb, &format!("https://hello.localhost:{}", at.port())).await;
        for host in [service.host(), "hello.localhost".to_owned(), "localhost".to_owned()] {
            assert_eq!(curl(at, &certificate, &host, &[]).await.as_deref(), Ok("ok\n"), "{host}");
        }
        made.push(std::fs::read(&certificate).expect("it was made"));
    }
    assert_eq!(made[0], made[1]);
}

#[tokio::test]
async fn certificates_are_replaced_without_losing_a_request() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let service = Service::new("hello");
    let host = service.host();
    let identity = Identity::new(folder.path(), "hello", &host);
    let both = folder.path().join("both.pem");
    let first = std::fs::read(&identity.certificate).expect("it was written");
    let second = Identity::new(folder.path(), "second", &host);
    let trusted = [first, std::fs::read(&second.certificate).expect("it was written")].concat();
    std::fs::write(&both, trusted).expect("the folder can be written");
    let (ebb, at) = up(&[service.scaling("min-scale", "1")], &[&identity]).await;
    ebb.until_pods("hello", 1).await;
    // New connections all the while, and one that lives through it.
    let is_replaced = std::cell::Cell::new(false);
    let clients = async {
        let mut answers = 0;
        while !is_replaced.get() {
            assert_eq!(curl(at, &both, &host, &[]).await.as_deref(), Ok("ok\n"));
            answers += 1;
        }
        answers
    };
    let config = folder.path().join("many");
    let url = format!("url = \"https://{host}:{}/?sleep=20\"\noutput = \"/dev/null\"\n", at.port());
    std::fs::write(&config, url.repeat(400)).expect("the folder can be written");
    let config = config.to_str().expect("UTF-8");
    let lasting = async {
        let arguments =
            ["--config", config, "--write-out", "%{http_code}.%{num_connects} ", "--output", "/dev/null"];
        curl(at, &both, &host, &arguments).await
    };
    let replacing = async {
        // The certificate alone first: until its key is there too, the old pair is presented.
        std::fs::copy(&second.certificate, &identity.certificate).expect("the folder can be written");
        eventually("a word about the pair that is none", PATIENCE, || async {
            let output = ebb.output();
            if output.contains("is not that of the certificate in") { Ok(()) } else { Err(output) }
        })
        .await;
        assert_eq!(curl(at, &second.certificate, &host, &[]).await, Err(UNTRUSTED));
        std::fs::copy(&second.key, &identity.key).expect("the folder can be written");
        eventually("the new certificate", PATIENCE, || async {
            curl(at, &second.certificate, &host, &[]).await.map_err(|code| code.to_string())
        })
        .await;
        is_replaced.set(true);
    };
    let (answers, lasting, ()) = tokio::join!(clients, lasting, replacing);
    assert!(answers > 0);
    let lasting = lasting.expect("every answer comes");
    let (opened, reused) = (lasting.matches("200.1 ").count(), lasting.matches("200.0 ").count());
    assert_eq!((opened, reused), (1, 400), "{lasting}");
}

#[tokio::test]
async fn a_wrong_certificate_is_told_at_the_start() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (good, other) =
        (Identity::new(folder.path(), "good", "h"), Identity::new(folder.path(), "other", "h"));
    let expired = Identity::until(folder.path(), "expired", "h", 2020);
    let nonsense = folder.path().join("nonsense.pem");
    std::fs::write(&nonsense, "nonsense").expect("the folder can be written");
    std::fs::write(folder.path().join("app.yaml"), Service::new("hello").yaml())
        .expect("the folder can be written");
    let missing = folder.path().join("missing.pem");
    for (certificate, key, expected) in [
        (&missing, &good.key, "missing.pem cannot be read; check its path and permissions"),
        (&nonsense, &good.key, "nonsense.pem holds no certificate that can be read"),
        (&good.certificate, &nonsense, "nonsense.pem holds no private key that can be read"),
        (&good.certificate, &other.key, "other-key.pem is not that of the certificate in"),
        (
            &expired.certificate,
            &expired.key,
            "expired-certificate.pem expired on Wed, 01 Jan 2020 00:00:00 GMT; renew it",
        ),
    ] {
        let output = Command::new(executable())
            .args(["up", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "-f", "app.yaml"])
            .args(ANYWHERE)
            .arg("--tls-cert")
            .arg(certificate)
            .arg("--tls-key")
            .arg(key)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .await
            .expect("the executable starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{expected:?} is not in {said}");
    }
}

/// The value of a series on the metrics' page.
async fn metric(ebb: &Ebb, series: &str) -> u64 {
    let page = whole_answer(ebb.api, "localhost", "/metrics").await.expect("there is a page");
    let value = page.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {series} in {page}"))
}

/// So many descriptors leave room for 172 clients.
const FEW: &str = "ulimit -S -n 64 && ulimit -H -n 512";

#[tokio::test]
async fn clients_that_connect_and_say_nothing_or_nonsense_keep_nobody_out() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let service = Service::new("hello").scaling("min-scale", "1");
    let host = service.host();
    let identity = Identity::new(folder.path(), "hello", &host);
    let arguments = [&ANYWHERE[..], &identity.arguments()].concat();
    let mut ebb = Ebb::up_after_with(FEW, &[service], &ConfigMap::short(), &arguments).await;
    let at = ebb.requests_over_tls().await;
    ebb.until_pods("hello", 1).await;
    // More than the process may have.
    let mut silent = Vec::new();
    while silent.len() < 400 {
        for _ in 0..20 {
            silent.push(TcpStream::connect(at).await.expect("it listens"));
        }
        assert_eq!(curl(at, &identity.certificate, &host, &[]).await.as_deref(), Ok("ok\n"));
        ebb.load("hello").one().await.assert_all_answered();
    }
    // They went for others, and not because their time was over.
    let closed = metric(&ebb, "activator_closed_idle_connections_total{reason=\"crowding\"}").await;
    assert!(closed > 200, "{closed} were closed");
    drop(silent);
    let series = |reason| format!("activator_failed_tls_handshakes_total{{reason=\"{reason}\"}}");
    // One of them may have to go before its first word, if this test is kept from saying it.
    eventually("who does not speak TLS is counted", PATIENCE, || async {
        let mut plain = TcpStream::connect(at).await.map_err(|error| error.to_string())?;
        let _ = plain.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        // An alert, or nothing; then the end.
        let mut said = Vec::new();
        let _ = plain.read_to_end(&mut said).await;
        assert!(!said.starts_with(b"HTTP"), "{said:?}");
        match metric(&ebb, &series("protocol")).await {
            0 => Err(format!("none, and it heard {said:?}")),
            counted => {
                assert_eq!(counted, 1);
                Ok(())
            }
        }
    })
    .await;
    // The beginning of a record that never ends is closed after a while.
    let mut slow = TcpStream::connect(at).await.expect("it listens");
    slow.write_all(&[22, 3, 1, 2]).await.expect("it is open");
    let closed = tokio::time::timeout(PATIENCE, slow.read(&mut [0])).await.expect("it is closed");
    assert_eq!(closed.expect("in order"), 0);
    eventually("the slow handshake is counted", PATIENCE, || async {
        match metric(&ebb, &series("timeout")).await {
            1.. => Ok(()),
            0 => Err("none".to_owned()),
        }
    })
    .await;
}

#[tokio::test]
async fn a_take_over_hands_over_the_listener_for_tls() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let service = Service::new("hello").scaling("min-scale", "1");
    let host = service.host();
    let identity = Identity::new(folder.path(), "hello", &host);
    let (mut first, at) = up(&[service], &[&identity]).await;
    first.until_pods("hello", 1).await;
    let requests = first.requests.to_string();
    let elsewhere = [&["--listen", &requests, "--tls-listen", "127.0.0.1:1"][..], &identity.arguments()];
    let (code, stderr) = first.failing_successor(&elsewhere.concat()).await;
    assert!(code == 1 && stderr.contains("--tls-listen says 127.0.0.1:1"), "{code}: {stderr}");
    let is_over = std::cell::Cell::new(false);
    let clients = async {
        let mut answers = 0;
        while !is_over.get() {
            assert_eq!(curl(at, &identity.certificate, &host, &[]).await.as_deref(), Ok("ok\n"));
            answers += 1;
        }
        answers
    };
    let taking_over = async {
        let address = at.to_string();
        let arguments = [&["--tls-listen", &address][..], &identity.arguments()].concat();
        let mut second = first.successor_with(&arguments).await;
        assert_eq!(second.requests_over_tls().await, at);
        assert_eq!(first.ended().await.code(), Some(0), "{}", first.output());
        // A client has asked the new one alone.
        assert_eq!(curl(at, &identity.certificate, &host, &[]).await.as_deref(), Ok("ok\n"));
        is_over.set(true);
        second
    };
    let (answers, _second) = tokio::join!(clients, taking_over);
    assert!(answers > 0);
}
