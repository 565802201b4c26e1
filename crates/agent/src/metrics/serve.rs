//! Serves metrics over HTTP.
use std::{net::SocketAddr, thread};

use anyhow::{anyhow, Result};
use tiny_http::{Header, Response, Server};
use tracing::warn;

use super::{text, Snapshot};

/// Answers HTTP requests at `address` as long as the process lives. `snapshot` is none if the daemon does not answer
/// or has stopped. Returns the address, which has the port if `address` has port 0.
///
/// # Errors
/// The address cannot be bound.
pub fn serve(
    address: SocketAddr,
    snapshot: impl Fn() -> Option<Snapshot> + Send + 'static,
) -> Result<SocketAddr> {
    let server = Server::http(address).map_err(|e| {
        anyhow!(
            "cannot serve --metrics on {address}: {e}; use a free port of this host, e.g. --metrics 127.0.0.1:9464"
        )
    })?;
    let bound = server.server_addr().to_ip().unwrap_or(address);
    let kind = "Content-Type: text/plain; version=0.0.4; charset=utf-8";
    let kind: Header = kind.parse().map_err(|()| anyhow!("a header"))?;
    let answer = move || {
        for request in server.incoming_requests() {
            let response = match request.url() {
                "/metrics" => match snapshot() {
                    Some(snapshot) => {
                        Response::from_string(text(&snapshot)).with_header(kind.clone())
                    }
                    None => {
                        Response::from_string("the daemon does not answer\n").with_status_code(503)
                    }
                },
                _ => Response::from_string("metrics are at /metrics\n").with_status_code(404),
            };
            if let Err(error) = request.respond(response) {
                warn!("metrics client: {error}");
            }
        }
    };
    thread::Builder::new()
        .name("metrics".into())
        .spawn(answer)?;
    Ok(bound)
}
