//! For whom a request is made is a matter of trust: apps hear what a proxy in front says of that, and of any
//! other client what is known of it.

use std::time::Duration;

use tests::{ConfigMap, Ebb, Service};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(60);
const POSING: &str = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: bank.example\r\n\
    X-Forwarded-Port: 443\r\nForwarded: for=203.0.113.9\r\n";

/// The head of a request as the app got it.
async fn seen(ebb: &Ebb, service: &Service) -> String {
    let port = ebb.requests.port();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let head = format!("GET / HTTP/1.1\r\nHost: {}\r\n{POSING}\r\n", service.host());
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    let mut bytes = [0; 4096];
    // The app's own head, and behind it the one that it got.
    while answer.matches("\r\n\r\n").count() < 2 {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut bytes)).await.expect("in time");
        let length = read.expect("an answer");
        assert!(length > 0, "it ended: {answer}");
        answer.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    let (_, echoed) = answer.split_once("\r\n\r\n").expect("two heads");
    echoed.to_ascii_lowercase()
}

#[tokio::test]
async fn headers_about_a_requests_way_are_passed_on_for_trusted_clients_alone() {
    let service = Service::new("hello").args(&["--raw"]).scaling("min-scale", "1");
    let told = "X-Forwarded-* and Forwarded are replaced";
    for (arguments, is_trusted, is_told) in [
        (&[][..], true, false),
        (&["--listen", "0.0.0.0:0"], true, true),
        (&["--trust-forwarded", "192.0.2.0/24,fd00::/8"], false, false),
        (&["--trust-forwarded", "192.0.2.0/24,127.0.0.1"], true, false),
    ] {
        let ebb = Ebb::up_with(std::slice::from_ref(&service), &ConfigMap::short(), arguments).await;
        ebb.until_pods("hello", 1).await;
        let head = seen(&ebb, &service).await;
        for line in [
            "x-forwarded-host: bank.example",
            "x-forwarded-port: 443",
            "x-forwarded-proto: https",
            "for=203.0.113.9",
        ] {
            assert_eq!(head.contains(line), is_trusted, "{arguments:?}: {line} in {head}");
        }
        let way = if is_trusted { "203.0.113.9, 127.0.0.1, 127.0.0.1" } else { "127.0.0.1, 127.0.0.1" };
        assert!(head.contains(&format!("x-forwarded-for: {way}\r\n")), "{arguments:?}: {head}");
        assert_eq!(ebb.output().contains(told), is_told, "{arguments:?}: {}", ebb.output());
    }
}

#[tokio::test]
async fn a_client_that_is_not_trusted_cannot_deny_that_it_speaks_tls() {
    let service = Service::new("hello").scaling("min-scale", "1");
    let arguments = ["--tls", "dev", "--tls-listen", "127.0.0.1:0", "--trust-forwarded", "192.0.2.1"];
    let mut ebb = Ebb::up_with(std::slice::from_ref(&service), &ConfigMap::short(), &arguments).await;
    let at = ebb.requests_over_tls().await;
    ebb.until_pods("hello", 1).await;
    let url = format!("https://hello.localhost:{}/", at.port());
    let mut command = tokio::process::Command::new("curl");
    let resolve = format!("hello.localhost:{}:127.0.0.1", at.port());
    command.args(["--silent", "--insecure", "--resolve", &resolve, "--header", "X-Forwarded-Proto: http"]);
    let output =
        command.args(["--write-out", "%header{x-proto}", &url]).output().await.expect("curl is there");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\nhttps");
}
