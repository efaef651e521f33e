//! `exec` and `attach`: from a request to a conversation with a container.
//!
//! A request enters; who may not, what is not there and what does not run is refused here, in the words of the real
//! server and its kubelet. The rest leaves as an upgraded connection, which [`channels`](super::channels) serves.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use ring::digest;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Body, Call, answer,
    channels::{self, Channels, Protocol},
    logs,
    path::RequestInfo,
};
use crate::{
    containers::{Output, Session},
    error::{Error, Reason, Result},
    registry::{Attributes, Operation, Resource, Target, WriteOptions},
};

/// What every WebSocket server adds to the key of its client (RFC 6455).
const SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Announces the end of the listener that a request came from.
#[derive(Debug, Clone)]
pub(super) struct Closing(pub(super) CancellationToken);

/// What a client wants of a container.
#[derive(Debug)]
struct Options {
    container: String,
    command: Vec<String>,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl Call<'_> {
    /// Enters a container.
    pub(super) async fn connect(
        &self,
        place: &RequestInfo,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        let (namespace, name) = (place.namespace(), place.name());
        let what = place.subresource.as_deref().unwrap_or_default();
        let options = self.admitted(place, resource, what).await?;
        // A browser can only GET, which is less than what it does here.
        if upgrade(&self.parts.headers).is_some() {
            self.authorize_verb(place, "create")?;
        }
        let pod = self.registry.get_value(resource, namespace, name).await?;
        let container = logs::choose(&pod, &options.container, name)?;
        if pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
            return Err(Error::bad_request(format!("pod {name} does not have a host assigned")));
        }
        let Some(wanted) = upgrade(&self.parts.headers) else {
            return Err(Error::bad_request("Upgrade request required"));
        };
        if !(options.stdin || options.stdout || options.stderr) {
            let why = "you must specify at least 1 of stdin, stdout, stderr";
            return Ok(answer::with_status(answer::text(why), StatusCode::BAD_REQUEST));
        }
        if logs::status(&pod, &container)["state"]["running"].is_null() {
            let why = match what {
                "attach" => format!("container {container} not found in pod {name}_{namespace}"),
                _ => format!("container not found (\"{container}\")"),
            };
            return Ok(answer::with_status(answer::text(&why), StatusCode::INTERNAL_SERVER_ERROR));
        }
        let command = (what == "exec").then(|| options.command.clone());
        self.upgraded(wanted, pod, container, command, &options)
    }

    /// What the client asks for, after admission has had its say.
    async fn admitted(&self, place: &RequestInfo, resource: &Resource, what: &str) -> Result<Options> {
        let stated = self.stated(what);
        let options = WriteOptions {
            user: self.identity.clone(),
            warnings: self.warnings.clone(),
            ..WriteOptions::default()
        };
        let (namespace, name) = (place.namespace(), place.name());
        let target = Target { resource, namespace, name, subresource: what };
        let request = Attributes::of_write(Operation::Connect, target, name, &options);
        let admitted = self.registry.mutate_by_admission(&request, stated, None).await?;
        self.registry.validate_by_admission(&request, Some(&admitted), None).await?;
        let flag = |name: &str| admitted[name].as_bool().unwrap_or(false);
        let words = admitted["command"].as_array().into_iter().flatten();
        Ok(Options {
            container: admitted["container"].as_str().unwrap_or_default().to_owned(),
            command: words.filter_map(Value::as_str).map(str::to_owned).collect(),
            stdin: flag("stdin"),
            stdout: flag("stdout"),
            stderr: flag("stderr"),
            tty: flag("tty"),
        })
    }

    /// The parameters of the request as the object that admission sees.
    fn stated(&self, what: &str) -> Value {
        let kind = if what == "exec" { "PodExecOptions" } else { "PodAttachOptions" };
        let mut stated = json!({"kind": kind, "apiVersion": "v1"});
        for name in ["stdin", "stdout", "stderr", "tty"].into_iter().filter(|name| self.query.flag(name)) {
            stated[name] = json!(true);
        }
        if !self.query.get("container").is_empty() {
            stated["container"] = json!(self.query.get("container"));
        }
        if what == "exec" {
            stated["command"] = json!(self.query.all("command"));
        }
        stated
    }

    /// Agrees to the upgrade, and begins the session behind it.
    fn upgraded(
        &self,
        wanted: &str,
        pod: Value,
        container: String,
        command: Option<Vec<String>>,
        options: &Options,
    ) -> Result<Response<Body>> {
        let Some(containers) = self.containers.cloned() else {
            return Err(Error::internal(
                "nobody runs containers here: this API server was started without nodes",
            ));
        };
        let headers = &self.parts.headers;
        if !wanted.eq_ignore_ascii_case("websocket") {
            return Err(Error::bad_request(format!(
                "this server does not speak {wanted} with containers: use WebSocket with {}",
                Protocol::NAMES.join(" or ")
            )));
        }
        let Some(upgrade) = self.parts.extensions.get::<OnUpgrade>().cloned() else {
            return Err(Error::bad_request(
                "this request has no connection of its own that could be upgraded: send it over a socket, with HTTP/1.1",
            ));
        };
        let response = agreed(headers)?;
        let permit = self.guard.session()?;
        let (stdin, typed) = channels::input(options.stdin);
        let (output, said) = Output::channel();
        let protocol = Protocol::choose(headers).ok_or_else(unspoken)?;
        let channels = Channels { protocol, stdin, said, stdout: options.stdout, stderr: options.stderr };
        let session = Session { pod, container, command, tty: options.tty, stdin: typed, output };
        let closing = self.parts.extensions.get::<Closing>().cloned();
        tokio::spawn(async move {
            let served = channels::serve(upgrade, channels, containers.run(session));
            match closing {
                Some(Closing(closing)) => drop(closing.run_until_cancelled(served).await),
                None => served.await,
            }
            drop(permit);
        });
        Ok(response)
    }
}

/// To what the client wants to go over, if it says so in both of the headers that must say it.
fn upgrade(headers: &HeaderMap) -> Option<&str> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let agreed = text(header::CONNECTION)?.to_ascii_lowercase().contains("upgrade");
    text(header::UPGRADE).filter(|wanted| agreed && !wanted.is_empty())
}

/// The answer after which the connection is a WebSocket.
fn agreed(headers: &HeaderMap) -> Result<Response<Body>> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let version = headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let Some(key) = headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| version) else {
        return Err(Error::bad_request(
            "a WebSocket needs the headers Sec-WebSocket-Key and Sec-WebSocket-Version: 13",
        ));
    };
    let protocol = Protocol::choose(headers).ok_or_else(unspoken)?;
    let salted = [key.as_bytes(), SALT].concat();
    let accept = STANDARD.encode(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &salted));
    let mut response = Response::new(Body::whole(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol.name()));
    let accept = HeaderValue::from_str(&accept).expect("base64 must be a header's value");
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

fn unspoken() -> Error {
    let names = Protocol::NAMES.join(", ");
    let why = format!("none of the protocols in Sec-WebSocket-Protocol is spoken here: send one of {names}");
    Error::new(Reason::Forbidden, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_key_is_answered_as_the_standard_shows() {
        let asked = headers(&[
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", "v9.channel.k8s.io, v4.channel.k8s.io"),
        ]);
        let answer = agreed(&asked).unwrap();
        assert_eq!(answer.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(answer.headers()["sec-websocket-protocol"], "v4.channel.k8s.io");
    }

    #[test]
    fn what_is_no_websocket_is_told_what_it_lacks() {
        let none =
            headers(&[("sec-websocket-version", "13"), ("sec-websocket-protocol", "v5.channel.k8s.io")]);
        assert_eq!(agreed(&none).unwrap_err().code, 400);
        let strange = headers(&[
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "x"),
            ("sec-websocket-protocol", "chat"),
        ]);
        assert_eq!(agreed(&strange).unwrap_err().code, 403);
        assert_eq!(upgrade(&headers(&[("connection", "keep-alive"), ("upgrade", "websocket")])), None);
        assert_eq!(
            upgrade(&headers(&[("connection", "keep-alive, Upgrade"), ("upgrade", "SPDY/3.1")])),
            Some("SPDY/3.1")
        );
    }
}
