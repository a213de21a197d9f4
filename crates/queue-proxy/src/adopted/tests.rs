//! On real sockets, read from the kernel that runs the tests. Connections are made without an await, so that
//! the time of a test stands still meanwhile.

use std::future::Future;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};

use tokio::task::LocalSet;
use vocabulary::{Epoch, PeerList, PodSettings, Version};

use super::*;

/// An app with clients that connected to its own port.
struct App {
    listener: TcpListener,
    /// Both ends of each connection.
    connections: Vec<(TcpStream, TcpStream)>,
}

impl App {
    fn listen() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").expect("a port"), connections: Vec::new() }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().expect("bound").port()
    }

    fn connect(&mut self) {
        let client = TcpStream::connect(("127.0.0.1", self.port())).expect("it listens");
        let (server, _) = self.listener.accept().expect("open");
        self.connections.push((client, server));
    }

    fn close_last(&mut self) {
        self.connections.pop();
        self.until_closed();
    }

    fn close_all(&mut self) {
        self.connections.clear();
        self.until_closed();
    }

    /// A busy kernel closes a connection a moment later, on a clock that does not stand still.
    fn until_closed(&self) {
        let (reader, mut found) = ConnectionReader::open(&[self.port()]).expect("this kernel shows them");
        for _ in 0..10_000 {
            if found.len() <= self.connections.len() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
            found = reader.all(&[self.port()]).expect("again");
        }
        panic!("{found:?}");
    }

    fn ask_on_first(&mut self) {
        self.connections[0].0.write_all(b"ask").expect("open");
    }
}

struct World {
    clock: Clock,
    settings: Rc<OwnerSettings>,
    clients: Rc<AdoptedClients>,
    counter: Cell<u64>,
}

impl World {
    fn of(app: &App, own_peers: OwnPeers) -> Self {
        Self::with_reader(app, own_peers, ConnectionReader::open)
    }

    fn with_reader(app: &App, own_peers: OwnPeers, open_reader: ReaderOpening) -> Self {
        let (clock, settings) = (Clock::start(), Rc::new(OwnerSettings::new()));
        let clients = AdoptedClients::new(clock, vec![app.port()], Rc::new(own_peers), Rc::clone(&settings));
        let clients = AdoptedClients { open_reader, ..clients };
        Self { clock, settings, clients: Rc::new(clients), counter: Cell::new(0) }
    }

    /// The owner names this adoption, or none.
    fn told(&self, adoption: Option<u64>) {
        self.counter.set(self.counter.get() + 1);
        let version = Version { epoch: Epoch(1), counter: self.counter.get() };
        let adoption = adoption.map(AdoptionId);
        assert!(self.settings.set(&PodSettings { version, adoption, ..PodSettings::default() }));
    }

    async fn passes(&self, seconds: f64) {
        self.clock.sleep_until(self.clock.now() + Duration::from_secs_f64(seconds)).await;
    }

    fn count(&self) -> u32 {
        let AdoptedConnections::Open(tally) = self.clients.report() else { panic!("this kernel shows them") };
        tally.count
    }
}

/// Runs a test beside the task that looks after the set.
async fn run<Test: Future<Output = ()>>(app: App, test: impl FnOnce(App, World) -> Test) {
    run_with_reader(app, ConnectionReader::open, test).await;
}

/// The same where the way to read connections is another.
async fn run_with_reader<Test: Future<Output = ()>>(
    app: App,
    open_reader: ReaderOpening,
    test: impl FnOnce(App, World) -> Test,
) {
    let world = World::with_reader(&app, OwnPeers::Only(Vec::new()), open_reader);
    let clients = Rc::clone(&world.clients);
    let local = LocalSet::new();
    local.spawn_local(async move { clients.run().await });
    local.run_until(test(app, world)).await;
}

#[tokio::test(start_paused = true)]
async fn members_are_the_connections_at_the_word_and_until_five_seconds_after_it() {
    run(App::listen(), async |mut app, world| {
        app.connect();
        app.connect();
        world.passes(60.0).await;
        assert_eq!(world.count(), 0, "no adoption was named");
        world.told(Some(1));
        world.passes(0.5).await;
        assert_eq!(world.count(), 2);
        app.connect();
        world.passes(6.0).await;
        assert_eq!(world.count(), 3, "nodes had not heard of it yet");
        app.connect();
        world.passes(30.0).await;
        assert_eq!(world.count(), 3, "a scraper that connects later is no member");
        app.close_last();
        app.close_last();
        world.passes(2.0).await;
        assert_eq!(world.count(), 2);
        app.connect();
        world.told(Some(1));
        world.passes(30.0).await;
        assert_eq!(world.count(), 2, "the same adoption takes no other set");
        app.close_all();
        world.passes(2.0).await;
        assert_eq!(world.count(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_later_adoption_adds_the_connections_that_are_open_then() {
    run(App::listen(), async |mut app, world| {
        app.connect();
        world.told(Some(1));
        world.passes(20.0).await;
        app.connect();
        world.passes(20.0).await;
        assert_eq!(world.count(), 1);
        world.told(Some(2));
        world.passes(0.5).await;
        assert_eq!(world.count(), 2, "of the other Service");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_change_is_told_and_only_to_an_owner_that_names_an_adoption() {
    run(App::listen(), async |mut app, world| {
        app.connect();
        app.connect();
        let none = tokio::time::timeout(Duration::from_secs(60), world.clients.news(0)).await;
        assert!(none.is_err(), "before an adoption there is nothing to tell");
        world.told(Some(7));
        let first = world.clients.news(0).await;
        let AdoptedConnections::Open(tally) = first.connections else { panic!("{:?}", first.connections) };
        assert_eq!((tally.count, tally.peers), (2, PeerList::of(["127.0.0.1".parse().expect("one")])));
        let silence = tokio::time::timeout(Duration::from_secs(60), world.clients.news(first.version)).await;
        assert!(silence.is_err(), "its age alone is no news");
        app.close_last();
        let second = world.clients.news(first.version).await;
        let AdoptedConnections::Open(tally) = second.connections else { panic!("{:?}", second.connections) };
        assert_eq!(tally.count, 1);
        assert!(tally.age >= Duration::from_secs(60), "{:?}", tally.age);
        world.told(None);
        app.close_last();
        let former = tokio::time::timeout(Duration::from_secs(60), world.clients.news(second.version)).await;
        assert!(former.is_err(), "an owner of a former version would not understand it");
        world.told(Some(7));
        let third = world.clients.news(second.version).await;
        assert_eq!(third.connections, AdoptedConnections::Open(ConnectionTally::default()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_members_in_use_until_each_has_rested_for_ten_seconds() {
    run(App::listen(), async |mut app, world| {
        let began = world.clock.now();
        world.clients.until_unused().await;
        assert_eq!(world.clock.now(), began, "without members there is nothing to wait for");
        app.connect();
        app.connect();
        world.told(Some(1));
        world.passes(30.0).await;
        let began = world.clock.now();
        world.clients.until_unused().await;
        assert_eq!(world.clock.now(), began, "they rest");
        app.ask_on_first();
        world.passes(1.5).await;
        let rest = world.clients.until_unused();
        tokio::pin!(rest);
        assert!(tokio::time::timeout(Duration::from_secs(5), &mut rest).await.is_err(), "one is in use");
        app.ask_on_first();
        let asked_at = world.clock.now();
        rest.await;
        let waited = world.clock.now().saturating_since(asked_at).as_secs_f64();
        assert!((10.0..=13.0).contains(&waited), "{waited}");
        app.ask_on_first();
        world.passes(1.5).await;
        app.close_all();
        world.passes(1.5).await;
        let began = world.clock.now();
        world.clients.until_unused().await;
        assert_eq!(world.clock.now(), began, "a client that is gone is not waited for");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connections_that_no_reader_shows_are_unreadable_from_each_adoption_on() {
    let none: ReaderOpening = |_| Err(io::ErrorKind::PermissionDenied.into());
    run_with_reader(App::listen(), none, async |mut app, world| {
        app.connect();
        world.passes(60.0).await;
        assert_eq!(world.count(), 0, "no adoption was named");
        world.told(Some(1));
        let first = world.clients.news(0).await;
        assert_eq!(first.connections, AdoptedConnections::Unreadable { age: Duration::ZERO });
        world.passes(60.0).await;
        let unreadable_for = |world: &World| match world.clients.report() {
            AdoptedConnections::Unreadable { age } => age.as_secs(),
            AdoptedConnections::Open(tally) => panic!("{tally:?}"),
        };
        assert_eq!(unreadable_for(&world), 60);
        let began = world.clock.now();
        world.clients.until_unused().await;
        assert_eq!(world.clock.now(), began, "a drain waits for no client of which nothing is known");
        world.told(Some(2));
        world.passes(1.0).await;
        assert_eq!(unreadable_for(&world), 1, "it counts from the later adoption");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connections_of_this_machine_itself_are_no_clients() {
    let mut app = App::listen();
    app.connect();
    let world = World::of(&app, OwnPeers::PodAndNode(Vec::new()));
    let (reader, found) = ConnectionReader::open(&[app.port()]).expect("this kernel shows them");
    assert_eq!((found.len(), reader.all(&[app.port()]).expect("again").len()), (1, 1));
    world.clients.admit(found);
    assert_eq!(world.count(), 0);
}

#[test]
fn a_set_grows_while_it_is_taken_and_then_shrinks() {
    let at = |second: u64| Timestamp::from_secs(1000 + second);
    let id = |client: u8| {
        let [own, peer] = [7, client].map(|last| SocketAddr::from(([10, 0, 0, last], 8080)));
        ConnectionId::new(own, peer, client.into())
    };
    let connection = |client, bytes| dataplane::KernelConnection { id: id(client), bytes };
    let mut set = AdoptedSet::default();
    set.admit(connection(1, Some(10)), at(0));
    set.admit(connection(1, Some(10)), at(3));
    set.admit(connection(2, None), at(3));
    let tally = set.tally(at(5));
    assert_eq!(
        (tally.count, tally.age, tally.peers.to_string()),
        (2, Duration::from_secs(5), "10.0.0.1, 10.0.0.2".to_owned())
    );
    let ids = set.ids();
    set.update(&ids, &[(id(1), Some(10)), (id(2), None), (id(3), Some(1))].into(), at(8));
    assert_eq!(set.tally(at(8)).count, 2, "a look makes no member");
    assert!(set.has_moved_since(at(7)), "the kernel does not count the bytes of the second");
    set.update(&ids, &[(id(1), Some(10))].into(), at(9));
    assert_eq!(set.tally(at(9)).count, 1, "the second is gone");
    assert!(set.has_moved_since(at(0) - Duration::from_nanos(1)) && !set.has_moved_since(at(0)));
    set.update(&ids, &[(id(1), Some(11)), (id(2), None)].into(), at(20));
    assert_eq!(set.tally(at(20)).count, 1, "gone is gone");
    assert!(set.has_moved_since(at(19)));
    set.update(&[], &MembersBytes::new(), at(21));
    assert_eq!(set.len(), 1, "what was not looked at stays");
    set.update(&ids, &MembersBytes::new(), at(22));
    assert!(set.is_empty());
}
