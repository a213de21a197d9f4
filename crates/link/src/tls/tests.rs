use rcgen::{BasicConstraints, ExtendedKeyUsagePurpose, IsCa, Issuer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use vocabulary::{ActivatorWord, PodWord};

use super::*;
use crate::{
    AcceptedLink, Acceptor, ActivatorOrder, LinkAccess, LinkError, Message, PodOrder, Reader, RefusedLinks,
    Writer,
};

/// An authority, as the control plane makes them.
struct Authority {
    key: KeyPair,
    parameters: CertificateParams,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = parameters.self_signed(&key).unwrap().pem();
        Self { key, parameters, pem }
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::new(self.parameters.clone(), &self.key)
    }

    /// The other one's certificate, signed by this one.
    fn vouch_for(&self, other: &Self) -> String {
        other.parameters.signed_by(&other.key, &self.issuer()).unwrap().pem()
    }

    /// Chain and key of a certificate for a name.
    fn certificate(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        (parameters.signed_by(&key, &self.issuer()).unwrap().pem(), key.serialize_pem())
    }

    fn identity(&self, role: LinkRole) -> Identity {
        let (chain, key) = self.certificate(role.name());
        Identity::from_pem(chain.as_bytes(), key.as_bytes(), self.pem.as_bytes()).unwrap()
    }
}

/// A listener behind a door.
struct Listening<In, Out> {
    acceptor: Acceptor<In, Out>,
    address: LinkAddress,
    refused: RefusedLinks,
}

impl<In: Message, Out: Message> Listening<In, Out> {
    async fn behind(door: LinkTlsAcceptor, channel: LinkChannel) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = LinkAddress { channel, ..listener.local_addr().unwrap().into() };
        let refused = RefusedLinks::default();
        let acceptor = Acceptor::new(listener, LinkAccess::Tls(door), refused.clone());
        Self { acceptor, address, refused }
    }

    /// How many had no certificate that is good here.
    fn without_certificate(&self) -> u64 {
        let registry = runtime::MetricsRegistry::default();
        registry.with(|registry| self.refused.register(registry, "links"));
        let text = registry.encode();
        let line = text.lines().find_map(|line| line.strip_prefix("links_total{reason=\"certificate\"} "));
        line.and_then(|count| count.parse().ok()).unwrap()
    }
}

/// A pod's, which knows these roots.
async fn pod(roots: &str) -> Listening<PodOrder, PodWord> {
    Listening::behind(LinkTlsAcceptor::of_pod(roots.as_bytes()).unwrap(), LinkChannel::TlsOfPod).await
}

async fn call(
    dialler: &TlsDialler,
    pod: &mut Listening<PodOrder, PodWord>,
) -> ((Reader<PodWord>, Writer<PodOrder>), AcceptedLink<PodOrder, PodWord>) {
    let dial = async {
        let mut ends = crate::dial_with::<PodWord, PodOrder>(dialler, pod.address).await.unwrap();
        ends.1.send(&PodOrder::Heartbeat).await.unwrap();
        ends
    };
    tokio::join!(dial, pod.acceptor.accept())
}

/// Tries to call, and waits until the door has said no.
async fn is_refused(dialler: &TlsDialler, pod: &mut Listening<PodOrder, PodWord>) {
    let before = pod.without_certificate();
    let dial = async {
        // The last word of a TLS 1.3 handshake is the client's: it hears that it was refused when it reads.
        if let Ok((mut reader, mut writer)) =
            crate::dial_with::<PodWord, PodOrder>(dialler, pod.address).await
        {
            let _ = writer.send(&PodOrder::Heartbeat).await;
            reader.next().await.expect_err("it is not let in");
        }
    };
    tokio::select! {
        () = dial => {}
        _ = pod.acceptor.accept() => panic!("it was let in"),
    }
    // The door's own count comes when it is looked at again.
    let _ = tokio::time::timeout(std::time::Duration::from_millis(200), pod.acceptor.accept()).await;
    assert_eq!(pod.without_certificate(), before + 1);
}

#[tokio::test]
async fn an_autoscaler_is_let_in_by_pods_and_activators() {
    let authority = Authority::new("one");
    let dialler = TlsDialler::new(&authority.identity(LinkRole::Autoscaler)).unwrap();
    let mut pod = pod(&authority.pem).await;
    let ((mut reader, _writer), mut accepted) = call(&dialler, &mut pod).await;
    let word = PodWord::Present(vocabulary::PresentCount { in_flight: 1, waiting: 0 });
    accepted.writer.send(&word).await.unwrap();
    assert_eq!(reader.next().await.unwrap(), Some(word));

    let door = LinkTlsAcceptor::new(&authority.identity(LinkRole::Activator)).unwrap();
    let mut activator =
        Listening::<ActivatorOrder, ActivatorWord>::behind(door, LinkChannel::TlsOfActivator).await;
    let dial = async {
        let mut ends =
            crate::dial_with::<ActivatorWord, ActivatorOrder>(&dialler, activator.address).await.unwrap();
        ends.1.send(&ActivatorOrder::Heartbeat).await.unwrap();
        ends
    };
    let (_ends, accepted) = tokio::join!(dial, activator.acceptor.accept());
    assert_eq!(accepted.first, ActivatorOrder::Heartbeat);
}

#[tokio::test]
async fn a_caller_without_an_autoscalers_certificate_gets_nothing() {
    let (authority, other) = (Authority::new("one"), Authority::new("other"));
    let mut pod = pod(&authority.pem).await;
    // An activator is none, and neither is an autoscaler of another cluster.
    for identity in [authority.identity(LinkRole::Activator), other.identity(LinkRole::Autoscaler)] {
        is_refused(&TlsDialler::new(&identity).unwrap(), &mut pod).await;
    }
    // One that calls itself so, and a pod's own key.
    let own = Identity::self_made(authority.pem.as_bytes()).unwrap();
    is_refused(&TlsDialler::new(&own).unwrap(), &mut pod).await;
    // Frames without TLS.
    let mut plain = TcpStream::connect(pod.address.socket).await.unwrap();
    plain.write_all(&[0, 0, 0, 2, 0x12, 0]).await.unwrap();
    let _ = tokio::time::timeout(std::time::Duration::from_millis(200), pod.acceptor.accept()).await;
    assert_eq!(pod.without_certificate(), 4);
}

#[tokio::test]
async fn a_server_without_an_activators_certificate_is_told_nothing() {
    let authority = Authority::new("one");
    let dialler = TlsDialler::new(&authority.identity(LinkRole::Autoscaler)).unwrap();
    let doors = [
        LinkTlsAcceptor::of_pod(authority.pem.as_bytes()).unwrap(),
        LinkTlsAcceptor::new(&authority.identity(LinkRole::Autoscaler)).unwrap(),
    ];
    for door in doors {
        let mut impostor =
            Listening::<ActivatorOrder, ActivatorWord>::behind(door, LinkChannel::TlsOfActivator).await;
        let dial = crate::dial_with::<ActivatorWord, ActivatorOrder>(&dialler, impostor.address);
        tokio::select! {
            outcome = dial => assert!(matches!(outcome.err(), Some(LinkError::Connect(_)))),
            _ = impostor.acceptor.accept() => panic!("it was told something"),
        }
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_links_and_open_links_go_on() {
    let (authority, other) = (Authority::new("one"), Authority::new("other"));
    let dialler = TlsDialler::new(&other.identity(LinkRole::Autoscaler)).unwrap();
    let mut pod = pod(&authority.pem).await;
    is_refused(&dialler, &mut pod).await;
    dialler.show(&authority.identity(LinkRole::Autoscaler)).unwrap();
    let ((mut reader, _writer), mut accepted) = call(&dialler, &mut pod).await;
    dialler.show(&authority.identity(LinkRole::Autoscaler)).unwrap();
    let (_another, _) = call(&dialler, &mut pod).await;
    let word = PodWord::Present(vocabulary::PresentCount { in_flight: 7, waiting: 0 });
    accepted.writer.send(&word).await.unwrap();
    assert_eq!(reader.next().await.unwrap(), Some(word));
}

/// The same of the side that is dialled: the next one measures by the new roots and sees the new certificate.
#[tokio::test]
async fn a_door_that_is_renewed_shows_it_to_the_next_and_links_that_stand_go_on() {
    let (former, next) = (Authority::new("one"), Authority::new("other"));
    let door = LinkTlsAcceptor::new(&former.identity(LinkRole::Activator)).unwrap();
    let mut activator =
        Listening::<ActivatorOrder, ActivatorWord>::behind(door.clone(), LinkChannel::TlsOfActivator).await;
    let dial = async |authority: &Authority, address| {
        let dialler = TlsDialler::new(&authority.identity(LinkRole::Autoscaler)).unwrap();
        let mut ends = crate::dial_with::<ActivatorWord, ActivatorOrder>(&dialler, address).await?;
        ends.1.send(&ActivatorOrder::Heartbeat).await?;
        Ok::<_, LinkError>(ends)
    };
    let (ends, mut accepted) = tokio::join!(dial(&former, activator.address), activator.acceptor.accept());
    let (mut reader, mut writer) = ends.unwrap();
    door.show(&next.identity(LinkRole::Activator)).unwrap();
    let (ends, _accepted) = tokio::join!(dial(&next, activator.address), activator.acceptor.accept());
    ends.unwrap();
    // It shows what the former authority knows nothing of.
    tokio::select! {
        refused = dial(&former, activator.address) => assert!(refused.is_err()),
        _ = activator.acceptor.accept() => panic!("it was let in"),
    }
    accepted.writer.send(&ActivatorWord::Draining).await.unwrap();
    assert_eq!(reader.next().await.unwrap(), Some(ActivatorWord::Draining));
    writer.send(&ActivatorOrder::Heartbeat).await.unwrap();
    assert_eq!(accepted.reader.next().await.unwrap(), Some(ActivatorOrder::Heartbeat));
}

/// Its certificate is good; TLS 1.2 would show it to listeners on the way.
#[tokio::test]
async fn a_peer_with_an_older_tls_is_refused() {
    let authority = Authority::new("one");
    let mut pod = pod(&authority.pem).await;
    let identity = authority.identity(LinkRole::Autoscaler);
    let connect = async |version: &'static rustls::SupportedProtocolVersion| {
        let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[version]);
        let builder = builder.unwrap().dangerous();
        let builder = builder.with_custom_certificate_verifier(Arc::new(AnyKeyVerifier(provider())));
        let config = builder.with_client_auth_cert(identity.chain.clone(), identity.key.clone_key()).unwrap();
        let stream = TcpStream::connect(pod.address.socket).await.unwrap();
        TlsConnector::from(Arc::new(config)).connect(server_name(LinkRole::Activator), stream).await
    };
    let trying = async {
        let refused = connect(&rustls::version::TLS12).await.expect_err("it is too old");
        assert!(refused.to_string().contains("ProtocolVersion"), "{refused}");
        connect(&rustls::version::TLS13).await.expect("the same of today is let in");
    };
    tokio::select! {
        () = trying => {}
        _ = pod.acceptor.accept() => panic!("nobody has said anything"),
    }
}

/// As it does over plain TCP: a process that ends closes its connections, and says no more.
#[tokio::test]
async fn a_peer_that_goes_away_between_frames_has_ended_the_link() {
    let authority = Authority::new("one");
    let dialler = TlsDialler::new(&authority.identity(LinkRole::Autoscaler)).unwrap();
    let mut pod = pod(&authority.pem).await;
    let ((reader, writer), mut accepted) = call(&dialler, &mut pod).await;
    drop((reader, writer));
    assert_eq!(accepted.reader.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_peer_that_knows_only_the_old_authority_takes_certificates_of_the_new_one() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let (own, key) = new.certificate(LinkRole::Autoscaler.name());
    let identity = |chain: String| Identity::from_pem(chain.as_bytes(), key.as_bytes(), new.pem.as_bytes());
    let mut pods = [pod(&old.pem).await, pod(&new.pem).await, pod(&(new.pem.clone() + &old.pem)).await];
    let bridged = TlsDialler::new(&identity(own.clone() + &old.vouch_for(&new)).unwrap()).unwrap();
    for pod in &mut pods {
        call(&bridged, pod).await;
    }
    let bare = TlsDialler::new(&identity(own).unwrap()).unwrap();
    is_refused(&bare, &mut pods[0]).await;
    // And what the one after that signed.
    let third = Authority::new("third");
    let (own, key) = third.certificate(LinkRole::Autoscaler.name());
    let chain = own + &new.vouch_for(&third) + &old.vouch_for(&new);
    let twice = Identity::from_pem(chain.as_bytes(), key.as_bytes(), third.pem.as_bytes()).unwrap();
    call(&TlsDialler::new(&twice).unwrap(), &mut pods[0]).await;
}

#[test]
fn a_text_that_is_no_certificate_is_named() {
    let authority = Authority::new("one");
    let (chain, key) = authority.certificate("x");
    let problem = |chain: &str, key: &str, roots: &str| {
        let read = Identity::from_pem(chain.as_bytes(), key.as_bytes(), roots.as_bytes());
        read.expect_err("something is wrong").to_string()
    };
    assert!(problem("", &key, &authority.pem).starts_with("the program's own certificate"));
    assert!(problem(&chain, "", &authority.pem).contains("no private key"));
    assert!(problem(&chain, &key, "x").starts_with("the authority's certificate"));
}
