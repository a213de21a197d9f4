//! A test's grip on the autoscalers of an `ebb up`: it holds one still in the middle of an order, lets it go,
//! or kills it.
//!
//! In `harnessed-ebb` each autoscaler has a thread of its own, as it has a process on a cluster, and gives
//! its orders through a `GrippedPlatform`, which stops that thread and so everything that the autoscaler
//! does. The test and the program speak over a connection, a line each way at a time: `hold autoscaler-1` is
//! answered with `held autoscaler-1` once the next order to scale stands still.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use autoscaler::{Autoscaler, AutoscalerConfig};
use futures_util::future::BoxFuture;
use link::{ByteStream, Dial};
use orchestration::{Order, PlatformOrder};
use platform::{Platform, Seat, Subscription};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use vocabulary::{LinkAddress, ReplicaName};

use crate::world::within;

/// Names the test's end to `harnessed-ebb`.
pub const VARIABLE: &str = "TEST_GRIP";

/// The part of an autoscaler in which a bug shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanickingPart {
    /// At the next order that it gives.
    EventLoop,
    /// At the next attempt to link a peer.
    Link,
}

/// What such a bug says.
pub const PANIC_TEXT: &str = "a bug that a test has put here";

/// The test's end of the connection to `harnessed-ebb`.
#[derive(Debug)]
pub struct Grip {
    listener: TcpListener,
    program: Option<tokio::io::BufStream<tokio::net::TcpStream>>,
}

impl Grip {
    /// Waits for the program on a port of its own.
    pub async fn listen() -> Self {
        Self { listener: TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free"), program: None }
    }

    /// Where the program finds it.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("it listens")
    }

    /// From its next order to scale on, this autoscaler stands still.
    pub async fn hold(&mut self, autoscaler: &str) {
        self.say(&format!("hold {autoscaler}\n")).await;
    }

    /// Waits until this autoscaler stands still there.
    pub async fn until_held(&mut self, autoscaler: &str) {
        let program = self.program.as_mut().expect("it was told to hold");
        let mut line = String::new();
        within("an order to stand still", program.read_line(&mut line)).await.expect("the program lives");
        assert_eq!(line.trim_end(), format!("held {autoscaler}"));
    }

    /// The order goes through, and whatever comes after it.
    pub async fn let_go(&mut self, autoscaler: &str) {
        self.say(&format!("go {autoscaler}\n")).await;
    }

    /// A bug shows in this part of an autoscaler, as soon as there is something to do for it.
    pub async fn panic_in(&mut self, part: PanickingPart, autoscaler: &str) {
        let order = match part {
            PanickingPart::EventLoop => "panic-in-loop",
            PanickingPart::Link => "panic-in-link",
        };
        self.say(&format!("{order} {autoscaler}\n")).await;
    }

    /// This autoscaler is gone, without a word.
    pub async fn kill(&mut self, autoscaler: &str) {
        self.say(&format!("kill {autoscaler}\n")).await;
    }

    async fn say(&mut self, line: &str) {
        if self.program.is_none() {
            let (stream, _) =
                within("the program's connection", self.listener.accept()).await.expect("it connects");
            self.program = Some(tokio::io::BufStream::new(stream));
        }
        let program = self.program.as_mut().expect("just connected");
        program.write_all(line.as_bytes()).await.expect("the program lives");
        program.flush().await.expect("the program lives");
    }
}

/// The program's end: every autoscaler that was started.
#[derive(Debug)]
pub struct GrippedAutoscalers {
    test: Mutex<TcpStream>,
    autoscalers: Mutex<BTreeMap<String, Gripped>>,
}

#[derive(Debug)]
struct Gripped {
    hold: Arc<Hold>,
    runtime: Runtime,
}

/// Whether an autoscaler may go on.
#[derive(Debug, Default)]
struct Hold {
    state: Mutex<HoldState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HoldState {
    #[default]
    Free,
    /// At its next order to scale.
    Due,
    /// The autoscaler stands still at this place.
    Held,
    /// It is to say no more.
    Dead,
    Panicking(PanickingPart),
}

impl GrippedAutoscalers {
    /// Connects to the test and does as that says for as long as the program lives.
    pub fn connect(address: &str) -> Arc<Self> {
        let test = TcpStream::connect(address).expect("the test listens");
        let lines = BufReader::new(test.try_clone().expect("a descriptor"));
        let this = Arc::new(Self { test: Mutex::new(test), autoscalers: Mutex::default() });
        let obeying = Arc::clone(&this);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                obeying.obey(&line);
            }
        });
        this
    }

    /// Starts one on a thread of its own.
    pub fn start(self: &Arc<Self>, mut config: AutoscalerConfig, platform: Arc<dyn Platform>) -> Autoscaler {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a thread can be started");
        let hold = Arc::<Hold>::default();
        let name = config.name.as_str().to_owned();
        config.dialler = Arc::new(GrippedDialler { inner: config.dialler, hold: Arc::clone(&hold) });
        let platform = GrippedPlatform {
            inner: platform,
            hold: Arc::clone(&hold),
            all: Arc::clone(self),
            name: name.clone(),
        };
        let entered = runtime.enter();
        let autoscaler = Autoscaler::start(config, Arc::new(platform));
        drop(entered);
        lock(&self.autoscalers).insert(name, Gripped { hold, runtime });
        autoscaler
    }

    fn obey(&self, line: &str) {
        let (order, name) = line.split_once(' ').expect("an order and a name");
        let mut autoscalers = lock(&self.autoscalers);
        let gripped = autoscalers.get(name).expect("the test names one that was started");
        match order {
            "hold" => gripped.hold.set(HoldState::Due),
            "go" => gripped.hold.set(HoldState::Free),
            "panic-in-loop" => gripped.hold.set(HoldState::Panicking(PanickingPart::EventLoop)),
            "panic-in-link" => gripped.hold.set(HoldState::Panicking(PanickingPart::Link)),
            "kill" => {
                gripped.hold.set(HoldState::Dead);
                let gripped = autoscalers.remove(name).expect("just found");
                gripped.runtime.shutdown_background();
            }
            unknown => panic!("{unknown:?} is no order"),
        }
    }
}

impl Hold {
    fn set(&self, state: HoldState) {
        *lock(&self.state) = state;
        self.changed.notify_all();
    }

    /// Returns when the order may go through.
    fn pass(&self, order: &Order, say_held: impl FnOnce()) {
        self.panic_in(PanickingPart::EventLoop);
        let mut state = lock(&self.state);
        if *state == HoldState::Due && matches!(order, Order::ScaleTo { .. }) {
            *state = HoldState::Held;
            say_held();
        }
        while *state == HoldState::Held {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn panic_in(&self, part: PanickingPart) {
        let state = *lock(&self.state);
        assert!(state != HoldState::Panicking(part), "{PANIC_TEXT}");
    }

    fn is_dead(&self) -> bool {
        *lock(&self.state) == HoldState::Dead
    }
}

/// The platform of one autoscaler.
struct GrippedPlatform {
    inner: Arc<dyn Platform>,
    hold: Arc<Hold>,
    all: Arc<GrippedAutoscalers>,
    name: String,
}

impl Platform for GrippedPlatform {
    fn subscribe(&self, owner: &ReplicaName) -> Subscription {
        let Subscription { facts, seat, renew_every } = self.inner.subscribe(owner);
        let seat = GrippedSeat {
            inner: Some(seat),
            hold: Arc::clone(&self.hold),
            all: Arc::clone(&self.all),
            name: self.name.clone(),
        };
        Subscription { facts, seat: Box::new(seat), renew_every }
    }
}

/// The dialler of one autoscaler's links.
#[derive(Debug)]
struct GrippedDialler {
    inner: Arc<dyn Dial>,
    hold: Arc<Hold>,
}

impl Dial for GrippedDialler {
    fn connect(&self, address: LinkAddress) -> BoxFuture<'static, io::Result<ByteStream>> {
        self.hold.panic_in(PanickingPart::Link);
        self.inner.connect(address)
    }

    fn reach(&self, address: LinkAddress) -> BoxFuture<'static, io::Result<()>> {
        self.inner.reach(address)
    }
}

struct GrippedSeat {
    inner: Option<Box<dyn Seat>>,
    hold: Arc<Hold>,
    all: Arc<GrippedAutoscalers>,
    name: String,
}

impl Seat for GrippedSeat {
    fn execute(&self, order: PlatformOrder) {
        self.hold.pass(&order.what, || {
            writeln!(lock(&self.all.test), "held {}", self.name).expect("the test lives");
        });
        if let Some(inner) = &self.inner {
            inner.execute(order);
        }
    }

    fn renew(&self) {
        if let Some(inner) = &self.inner {
            inner.renew();
        }
    }
}

impl Drop for GrippedSeat {
    fn drop(&mut self) {
        // A killed process says no goodbye: only its lease tells.
        if self.hold.is_dead() {
            std::mem::forget(self.inner.take());
        }
    }
}

fn lock<Value>(mutex: &Mutex<Value>) -> MutexGuard<'_, Value> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
