// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Serves metrics over HTTP. Whoever reaches the port may be hostile, so everything is bounded: clients, the head of a request,
//! the time of a connection, and how often the daemon is asked. Bodies are not read.
use std::{
    cell::RefCell,
    convert::Infallible,
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use http::{header, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime,
    sync::Semaphore,
    task::LocalSet,
    time::{sleep, timeout},
};
use tracing::debug;

use super::{text, Snapshot};

/// Clients at a time; others wait in the kernel's queue.
const CLIENTS: usize = 16;
/// Longest head of a request, bytes.
const LONGEST_HEAD: usize = 8192;
/// Time of a connection, from its begin to the end of the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long the same metrics are served: many requests ask the daemon no more often.
const FRESH: Duration = Duration::from_millis(100);
/// Wait after the kernel has refused a connection, for lack of descriptors or memory.
const RETRY: Duration = Duration::from_millis(100);

const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers HTTP requests at `address` as long as the process lives. `snapshot` is none if the daemon does not answer
/// or has stopped. Returns the address, which has the port if `address` has port 0.
///
/// # Errors
/// The address cannot be bound.
pub fn serve(
    address: SocketAddr,
    snapshot: impl Fn() -> Option<Snapshot> + Send + 'static,
) -> Result<SocketAddr> {
    let cannot = || {
        format!("cannot serve --metrics on {address}; use a free port of this host, e.g. --metrics 127.0.0.1:9464")
    };
    let listener = std::net::TcpListener::bind(address).with_context(cannot)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = {
        let _inside = runtime.enter();
        TcpListener::from_std(listener)?
    };
    let answer = move || {
        let page = Rc::new(Page::of(snapshot));
        LocalSet::new().block_on(&runtime, accept(listener, page));
    };
    thread::Builder::new()
        .name("metrics".into())
        .spawn(answer)?;
    Ok(bound)
}

async fn accept<S: Fn() -> Option<Snapshot> + 'static>(listener: TcpListener, page: Rc<Page<S>>) {
    let places = Arc::new(Semaphore::new(CLIENTS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let client = match listener.accept().await {
            Ok((client, _)) => client,
            Err(error) => {
                debug!("metrics: {error}");
                sleep(RETRY).await;
                continue;
            }
        };
        let page = Rc::clone(&page);
        tokio::task::spawn_local(async move {
            let served = timeout(PATIENCE, converse(client, page)).await;
            debug!("metrics client: {served:?}");
            drop(place);
        });
    }
}

/// One request and its answer.
async fn converse<S: Fn() -> Option<Snapshot>>(
    client: TcpStream,
    page: Rc<Page<S>>,
) -> hyper::Result<()> {
    let respond = service_fn(|request: Request<Incoming>| {
        let response = page.answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(LONGEST_HEAD)
        .header_read_timeout(None) // the connection has one
        .serve_connection(TokioIo::new(client), respond)
        .await
}

/// What is served, for as long as it is fresh.
struct Page<S> {
    snapshot: S,
    last: RefCell<Option<(Instant, Option<Bytes>)>>,
}

impl<S: Fn() -> Option<Snapshot>> Page<S> {
    fn of(snapshot: S) -> Page<S> {
        Page {
            snapshot,
            last: RefCell::default(),
        }
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let plain = |status: StatusCode, body: Bytes| {
            let mut response = Response::new(Full::new(body));
            *response.status_mut() = status;
            let kind = header::HeaderValue::from_static(KIND);
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        };
        let said = |status, text: &'static str| plain(status, Bytes::from_static(text.as_bytes()));
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut response = said(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            let methods = header::HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(header::ALLOW, methods);
            return response;
        }
        if request.uri().path() != "/metrics" {
            return said(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
        }
        match self.text() {
            Some(text) => plain(StatusCode::OK, text),
            None => said(
                StatusCode::SERVICE_UNAVAILABLE,
                "the daemon does not answer\n",
            ),
        }
    }

    fn text(&self) -> Option<Bytes> {
        let mut last = self.last.borrow_mut();
        let is_fresh = |(at, _): &&(Instant, _)| at.elapsed() < FRESH;
        if let Some((_, text)) = last.as_ref().filter(is_fresh) {
            return text.clone();
        }
        let now = (self.snapshot)().map(|snapshot| Bytes::from(text(&snapshot)));
        *last = Some((Instant::now(), now.clone()));
        now
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    fn door() -> SocketAddr {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        serve(any, || Some(Snapshot::default())).expect("a free port")
    }

    /// What comes back until the connection ends, which it does within its patience, whatever is sent.
    fn send(
        door: SocketAddr,
        mut request: impl FnMut(&mut TcpStream) -> std::io::Result<()>,
    ) -> String {
        let mut stream = TcpStream::connect(door).expect("the port is open");
        let _ = request(&mut stream); // it may be closed before all is written
        let mut text = vec![];
        let _ = stream.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The answer to a whole head. A client that has no processor for two seconds gets none, and asks again.
    fn ask(door: SocketAddr, head: &str) -> String {
        let answer = || send(door, |stream| stream.write_all(head.as_bytes()));
        let mut answers = (0..100).map(|_| answer());
        answers.find(|text| !text.is_empty()).unwrap_or_default()
    }

    fn assert_answers(door: SocketAddr) {
        let text = ask(door, "GET /metrics HTTP/1.0\r\n\r\n");
        assert!(text.starts_with("HTTP/1.0 200 OK"), "{text}");
        assert!(text.contains(KIND), "{text}");
    }

    #[test]
    fn it_answers_what_it_knows_and_names_the_rest() {
        let door = door();
        assert_answers(door);
        let status = |head: &str| {
            ask(door, head)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let head = ask(door, "HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(
            head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"),
            "{head}"
        );
        assert!(status("GET / HTTP/1.1\r\nHost: h\r\n\r\n").contains("404"));
        assert!(status("DELETE /metrics HTTP/1.1\r\nHost: h\r\n\r\n").contains("405"));
        assert!(status("nonsense\r\n\r\n").contains("400"));
    }

    /// Whatever a client announces, nothing is allocated for it.
    #[test]
    fn bodies_are_not_read() {
        let door = door();
        for length in [
            "99999999999",
            "18446744073709551615",
            "-1",
            "99999999999999999999999",
        ] {
            let text = ask(
                door,
                &format!("POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"),
            );
            assert!(text.starts_with("HTTP/1.1 4"), "{length}: {text}");
        }
        let text = send(door, |stream| {
            stream.write_all(
                b"POST /metrics HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
            )?;
            loop {
                stream.write_all(b"400\r\n")?;
                stream.write_all(&[b'x'; 1024])?;
                stream.write_all(b"\r\n")?;
            }
        });
        assert!(text.is_empty() || text.contains("405"), "{text}");
        assert_answers(door);
    }

    #[test]
    fn a_head_without_end_is_refused() {
        let door = door();
        for part in ["GET /metrics HTTP/1.1\r\nX: ", "GET /", ""] {
            send(door, |stream| {
                stream.write_all(part.as_bytes())?;
                loop {
                    stream.write_all(&[b'x'; 4096])?;
                }
            });
        }
        send(door, |stream| {
            stream.write_all(b"GET /metrics HTTP/1.1\r\n")?;
            loop {
                stream.write_all(b"A: b\r\n")?;
            }
        });
        assert_answers(door);
    }

    /// They get a place after others have lost theirs, which takes them two seconds.
    #[test]
    fn clients_that_say_nothing_lose_their_places() {
        let door = door();
        let silent: Vec<TcpStream> = (0..3 * CLIENTS)
            .map(|_| TcpStream::connect(door).expect("the kernel's queue has room"))
            .collect();
        assert_answers(door);
        drop(silent);
    }

    #[test]
    fn many_requests_ask_the_daemon_seldom() {
        let asked = Arc::new(AtomicUsize::new(0));
        let asks = Arc::clone(&asked);
        let began = Instant::now(); // machine: the bound grows with the time that it takes
        let page = Page::of(move || {
            asks.fetch_add(1, Ordering::Relaxed);
            Some(Snapshot::default())
        });
        for _ in 0..10_000 {
            page.text();
        }
        // machine: as above
        let most = began.elapsed().as_millis() / FRESH.as_millis() + 1;
        let asked = asked.load(Ordering::Relaxed);
        assert!((1..=most as usize).contains(&asked), "{asked} of {most}");
    }
}
