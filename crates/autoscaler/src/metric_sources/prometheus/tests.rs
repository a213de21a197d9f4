//! Numbers and refusals word by word; and a server that wants a token, or speaks TLS.

use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;

const SEVEN: &str =
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1.5,"7"]}]}}"#;

/// Answers 7 to each question, and keeps what was asked.
async fn serve<Stream: AsyncRead + AsyncWrite + Unpin>(mut stream: Stream, asked: &Mutex<Vec<String>>) {
    let mut request = vec![0; 4096];
    let Ok(length) = stream.read(&mut request).await else { return };
    asked.lock().push(String::from_utf8_lossy(&request[..length]).into_owned());
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{SEVEN}", SEVEN.len());
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// A server on this machine; over TLS if it has something to prove itself with.
async fn server(acceptor: Option<TlsAcceptor>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            match &acceptor {
                None => serve(stream, &kept).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, &kept).await;
                    }
                }
            }
        }
    });
    (port, asked)
}

#[tokio::test]
async fn a_token_is_read_from_its_file_at_each_question() {
    let (port, asked) = server(None).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token").display().to_string();
    let asking = PrometheusServer {
        url: format!("http://127.0.0.1:{port}/prometheus/"),
        bearer_token_file: Some(file.clone()),
        ca_file: None,
    };
    assert!(asking.ask("up").await.expect_err("no token yet").starts_with(&file));
    for token in ["one", "two"] {
        std::fs::write(&file, format!("{token}\n")).expect("it can be written");
        assert_eq!(asking.ask("sum({a=\"b\"})").await, Ok(MilliValue::new(7000)));
        let asked = asked.lock().pop().expect("it was asked");
        assert!(
            asked.starts_with("GET /prometheus/api/v1/query?query=sum%28%7Ba%3D%22b%22%7D%29 HTTP/1.1"),
            "{asked}"
        );
        assert!(asked.to_lowercase().contains(&format!("authorization: bearer {token}\r\n")), "{asked}");
    }
}

#[tokio::test]
async fn over_tls_a_server_is_believed_whom_the_file_or_the_machine_vouches_for() {
    let key = KeyPair::generate().expect("a key");
    let parameters = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("safe versions").with_no_client_auth();
    let chain = CertificateDer::from_pem_slice(certificate.pem().as_bytes()).expect("a certificate");
    let secret = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("a key");
    let config = builder.with_single_cert(vec![chain], secret).expect("they belong together");
    let (port, asked) = server(Some(TlsAcceptor::from(Arc::new(config)))).await;

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem").display().to_string();
    let asking = |host: &str, ca_file: Option<&str>| PrometheusServer {
        url: format!("https://{host}:{port}"),
        bearer_token_file: None,
        ca_file: ca_file.map(str::to_owned),
    };
    assert!(asking("127.0.0.1", Some(&file)).ask("up").await.expect_err("no file yet").starts_with(&file));
    std::fs::write(&file, "nothing").expect("it can be written");
    let refused = asking("127.0.0.1", Some(&file)).ask("up").await.expect_err("no certificate in it");
    assert_eq!(refused, format!("{file} holds no certificate; write those of the authority in PEM"));
    std::fs::write(&file, certificate.pem()).expect("it can be written");
    assert_eq!(asking("127.0.0.1", Some(&file)).ask("up").await, Ok(MilliValue::new(7000)));
    assert_eq!(asked.lock().len(), 1);
    // Neither a stranger nor another name is asked anything.
    let refused = asking("127.0.0.1", None).ask("up").await.expect_err("the machine does not know it");
    assert!(refused.contains("invalid peer certificate"), "{refused}");
    let refused = asking("localhost", Some(&file)).ask("up").await.expect_err("it is another name's");
    assert!(refused.contains("invalid peer certificate"), "{refused}");
    assert_eq!(asked.lock().len(), 1);
}

#[test]
fn an_answer_is_one_number_or_says_why_not() {
    let vector = |value: &str| {
        format!(
            r#"{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{}},"value":[1.5,"{value}"]}}]}}}}"#
        )
    };
    for (body, expected) in [
        (vector("0.07"), Some(Ok(MilliValue::new(70)))),
        (vector("1e+06"), Some(Ok(MilliValue::new(1_000_000_000)))),
        (vector("-3"), Some(Ok(MilliValue::new(-3000)))),
        (vector("NaN"), Some(Err("the value is NaN, which says nothing".to_owned()))),
        (vector("+Inf"), Some(Err("the value is +Inf, which says nothing".to_owned()))),
        (
            r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#.to_owned(),
            Some(Err("no series".to_owned())),
        ),
        (
            r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#.to_owned(),
            Some(Err("parse error".to_owned())),
        ),
        ("<html>".to_owned(), None),
    ] {
        assert_eq!(number_of(body.as_bytes()), expected, "{body}");
    }
}
