//! `brine:host/http`: HTTP requests to granted hosts, through the broker, which has the client.

use brine_sandbox_wire::{ByteBuf, HostOp, HttpOp, HttpRequest};
use serde::Deserialize;

use super::bindings::brine::host::http as wit;
use crate::guest::Guest;

#[derive(Deserialize)]
struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: ByteBuf,
    url: String,
}

impl wit::Host for Guest {
    async fn send(&mut self, request: wit::Request) -> wasmtime::Result<Result<wit::Response, String>> {
        let wit::Request { method, url, headers, body, timeout_ms, max_body, max_redirects } = request;
        let body = body.map(ByteBuf::from);
        let request = HttpRequest { method, url, headers, body, timeout_ms, max_body, max_redirects };
        let answer = self.ask_for::<Response>("http.send", HostOp::Http(HttpOp::Request(Box::new(request)))).await?;
        Ok(answer.map(|Response { status, headers, body, url }| {
            let body = body.into_vec();
            wit::Response { status, headers, body, url }
        }))
    }
}
