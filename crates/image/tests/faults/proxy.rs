//! A registry behind a proxy: what HTTPS_PROXY, HTTP_PROXY and NO_PROXY name is gone through, and nothing else.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};
use windlass_image::registry::{Access, Error, Keyring, Options, Proxies, PushOptions, Repository, push};

use crate::{
    layout,
    server::{Play, Server, options},
};

/// A name that no machine has: only the proxy knows where it leads.
const HOST: &str = "registry.example:5000";

/// A proxy on a free port that leads everybody to one address.
struct Proxy {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    /// Whoever does not send this login is refused.
    async fn start(leads_to: String, login: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = heads.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, leads_to.clone(), login, seen.clone()));
            }
        });
        Self { address, heads, task }
    }

    fn seen(&self, begin: &str) -> usize {
        self.heads.lock().unwrap().iter().filter(|head| head.starts_with(begin)).count()
    }
}

async fn serve(
    mut stream: TcpStream,
    leads_to: String,
    login: Option<&'static str>,
    seen: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let text = String::from_utf8(head.clone()).unwrap();
    seen.lock().unwrap().push(text.clone());
    let wanted = login.map(|login| format!("proxy-authorization: basic {login}"));
    if wanted.is_some_and(|wanted| !text.to_lowercase().contains(&wanted.to_lowercase())) {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(refusal).await.unwrap();
        return;
    }
    let mut other = TcpStream::connect(leads_to).await.unwrap();
    if text.starts_with("CONNECT ") {
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    } else {
        other.write_all(&head).await.unwrap();
    }
    let _ = copy_bidirectional(&mut stream, &mut other).await;
}

/// TLS in front of a server, for the name of [`HOST`]; returns its address and the authority to trust.
async fn with_tls(behind: String) -> (SocketAddr, String, JoinHandle<()>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["registry.example".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&own, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut other = TcpStream::connect(behind).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut other).await;
            });
        }
    });
    (address, authority.pem(), task)
}

fn through(pairs: &[(&str, String)]) -> Proxies {
    Proxies::from_environment(|name| {
        pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
    })
    .unwrap()
}

async fn pushed(options: &Options) -> Result<(), Error> {
    let reference = format!("{HOST}/team/shop:1").parse().unwrap();
    let repository = Repository::open(&reference, Access::Push, options).await?;
    push(&layout(), None, &repository, PushOptions::default(), Arc::new(|_| {})).await.map(|_| ())
}

#[tokio::test]
async fn a_registry_with_tls_is_reached_through_a_tunnel_and_trusted_by_its_own_name() {
    let server = Server::start(|_| Play::Registry).await;
    let (front, authority, task) = with_tls(server.address.clone()).await;
    let proxy = Proxy::start(front.to_string(), Some("bWU6cEBzcw==")).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), authority).unwrap();
    let plain = Options { authorities: Some(file.path().to_owned()), ..Options::default() };
    let url = format!("http://me:p%40ss@{}", proxy.address);
    let options = Options { proxies: through(&[("HTTPS_PROXY", url)]), ..plain.clone() };
    pushed(&options).await.unwrap();
    assert!(server.tag("1").is_some());
    assert!(proxy.seen(&format!("CONNECT {HOST} HTTP/1.1")) > 0);
    assert_eq!(proxy.seen("PUT"), 0, "what is sent goes through TLS");

    let url = format!("http://{}", proxy.address);
    let error = pushed(&Options { proxies: through(&[("HTTPS_PROXY", url)]), ..plain }).await.unwrap_err();
    assert!(error.to_string().contains("wants to know who asks"), "{error}");
    task.abort();
}

#[tokio::test]
async fn a_registry_without_tls_is_asked_at_the_proxy() {
    let server = Server::start(|_| Play::Registry).await;
    let proxy = Proxy::start(server.address.clone(), Some("bWU6cHc=")).await;
    let url = format!("http://me:pw@{}", proxy.address);
    let proxies = through(&[("HTTPS_PROXY", url.clone()), ("HTTP_PROXY", url)]);
    pushed(&Options { proxies, ..options(Keyring::default()) }).await.unwrap();
    assert!(server.tag("1").is_some());
    assert!(proxy.seen(&format!("CONNECT {HOST}")) > 0, "it is first asked whether it speaks TLS");
    assert!(proxy.seen(&format!("GET http://{HOST}/v2/ HTTP/1.1")) > 0);
}

#[tokio::test]
async fn whom_no_proxy_names_is_asked_directly() {
    let server = Server::start(|_| Play::Registry).await;
    let proxy = Proxy::start(server.address.clone(), None).await;
    let url = format!("http://{}", proxy.address);
    let pairs = [("HTTPS_PROXY", url.clone()), ("HTTP_PROXY", url), ("NO_PROXY", ".example".to_owned())];
    let error =
        pushed(&Options { proxies: through(&pairs), ..options(Keyring::default()) }).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "nobody has that name: {error}");
    assert_eq!(proxy.seen(""), 0);
}

#[tokio::test]
async fn a_proxy_that_is_down_is_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxies = through(&[("HTTPS_PROXY", format!("http://{free}"))]);
    let error = pushed(&Options { proxies, ..Options::default() }).await.unwrap_err();
    assert!(error.to_string().contains(&format!("the proxy {free}")), "{error}");
}
