use protocol::http1::HeadLimits;

use super::*;

/// A head of so many bytes, but for its end.
fn head_of(bytes: usize) -> String {
    let begin = "GET /large HTTP/1.1\r\nHost: h\r\nCookie: ";
    format!("{begin}{}", "c".repeat(bytes - begin.len() - "\r\n\r\n".len()))
}

/// Half heads take their part of the memory and no more: who comes after that waits a little and is refused,
/// and an ordinary request is served.
#[test]
fn half_heads_take_a_bounded_part_of_the_memory() {
    run(async {
        let memory = MemoryBudget::of_process(Some(4 << 20));
        let limits = ServerLimits { memory, ..ServerLimits::default() };
        let server = Server::limited(limits, echo_target);
        let mut halves = Vec::new();
        for _ in 0..60 {
            let mut stream = server.connect().await;
            stream.write_all(&head_of(100_000).as_bytes()[..99_000]).await.expect("open");
            halves.push(stream);
        }
        let mut refused = 0;
        for stream in &mut halves {
            let mut begin = [0; 12];
            if let Ok(Ok(_)) =
                tokio::time::timeout(Duration::from_millis(400), stream.read_exact(&mut begin)).await
            {
                assert_eq!(&begin, b"HTTP/1.1 431");
                refused += 1;
            }
        }
        assert!((30..60).contains(&refused), "{refused} of 60 were refused");
        assert!(memory.held() <= 2 << 20, "{} bytes are held", memory.held());
        let answer = server.ask("GET /small HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
        assert!(answer.ends_with("</small>"), "{answer}");
        drop(halves);
        while memory.held() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

/// A whole head counts until its request is answered.
#[test]
fn a_large_head_is_held_for_as_long_as_its_request() {
    run(async {
        let memory = MemoryBudget::of_process(Some(64 << 20));
        let limits = ServerLimits { memory, ..ServerLimits::default() };
        let held = Rc::new(std::cell::Cell::new(0));
        let server = Server::limited(limits, {
            let held = Rc::clone(&held);
            move |request| {
                held.set(memory.held());
                echo_target(request)
            }
        });
        let mut stream = server.connect().await;
        for _ in 0..3 {
            stream.write_all(format!("{}\r\n\r\n", head_of(100_000)).as_bytes()).await.expect("open");
            until(&mut stream, "</large>").await;
            assert!(held.replace(0) >= 180_000);
            while memory.held() > 0 {
                tokio::task::yield_now().await;
            }
        }
    });
}

/// One service allows more to some: as a queue-proxy does where the hop's key is shown.
struct Allowing;

impl Service for Allowing {
    type Body = Body;

    async fn call(self: Rc<Self>, _: Request<Body>, _: Rc<Connection>) -> Result<Response<Body>, Abort> {
        Ok(Response::new(Body::full("served")))
    }

    fn head_limits(&self, request: &Request<()>) -> HeadLimits {
        if request.headers().contains_key("key") { HeadLimits::HOP } else { HeadLimits::OUTER }
    }
}

#[test]
fn a_head_is_as_large_as_its_sender_may_send_it() {
    run(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let limits = ServerLimits { head: HeadLimits::HOP, ..ServerLimits::default() };
        tokio::task::spawn_local(crate::serve(listener, Rc::new(Allowing), Drain::new(), limits));
        let answer = async |bytes: usize, more: &str| {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            let end = format!("\r\n{more}Connection: close\r\n\r\n");
            let text = head_of(bytes - end.len() + 4) + &end;
            assert_eq!(text.len(), bytes);
            stream.write_all(text.as_bytes()).await.expect("open");
            rest(&mut stream).await.expect("in order")
        };
        let limit = "larger than 131072 bytes";
        for (bytes, more, expected) in [
            (131_072, "", "served"),
            (131_073, "", limit),
            (147_456, "", limit),
            (147_456, "key: 1\r\n", "served"),
            (147_457, "key: 1\r\n", "longer than 147456 bytes"),
        ] {
            let answer = answer(bytes, more).await;
            assert!(answer.contains(expected), "{bytes} {more}: {answer}");
            assert_eq!(answer.starts_with("HTTP/1.1 431"), expected != "served", "{answer}");
        }
    });
}

/// A service whose limit is set while it runs.
struct Changing(std::cell::Cell<vocabulary::HeadSizeLimit>);

impl Service for Changing {
    type Body = Body;

    async fn call(self: Rc<Self>, _: Request<Body>, _: Rc<Connection>) -> Result<Response<Body>, Abort> {
        Ok(Response::new(Body::full("served")))
    }

    fn head_limits_max(&self, _usual: HeadLimits) -> HeadLimits {
        HeadLimits::outer(self.0.get())
    }

    fn head_limits(&self, _: &Request<()>) -> HeadLimits {
        HeadLimits::outer(self.0.get())
    }

    fn head_size_setting(&self) -> Option<&'static str> {
        Some("a key sets it")
    }
}

#[test]
fn a_changed_limit_holds_for_the_next_head_of_a_running_connection() {
    run(async {
        let kib = |kib: u32| vocabulary::HeadSizeLimit::new(kib << 10).expect("in range");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let service = Rc::new(Changing(std::cell::Cell::new(kib(256))));
        tokio::task::spawn_local(crate::serve(
            listener,
            Rc::clone(&service),
            Drain::new(),
            ServerLimits::default(),
        ));
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        for (limit, bytes) in [(256, 200_000), (8, 8_000), (16, 16_000)] {
            service.0.set(kib(limit));
            stream.write_all(format!("{}\r\n\r\n", head_of(bytes)).as_bytes()).await.expect("open");
            until(&mut stream, "served").await;
        }
        service.0.set(kib(8));
        stream.write_all(format!("{}\r\n\r\n", head_of(16_000)).as_bytes()).await.expect("open");
        let answer = rest(&mut stream).await.expect("in order");
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        assert!(answer.contains(" than 8192 bytes") && answer.contains("; a key sets it"), "{answer}");
    });
}

/// An answer's head counts beside that of its request, and one that finds no room becomes a short refusal.
#[test]
fn the_head_of_an_answer_takes_its_part_of_the_memory_and_no_more() {
    run(async {
        for (mib, letters, expected) in [(1, 100_000, "502"), (16, 100_000, "200"), (1, 3_000, "200")] {
            let memory = MemoryBudget::of_process(Some(mib << 20));
            let limits = ServerLimits { memory, ..ServerLimits::default() };
            let server = Server::limited(limits, move |_| async move {
                let answer = http::Response::builder().header("a", "x".repeat(letters));
                Ok(answer.body(Body::full("answered")).expect("legal").into())
            });
            let answer = server.ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{mib} MiB, {letters} letters");
            assert_eq!(answer.ends_with("answered"), expected == "200");
            assert_eq!(answer.contains("the head of the answer is large"), expected == "502");
            while memory.held() > 0 {
                tokio::task::yield_now().await;
            }
        }
    });
}
