//! What is called etcd: it says that it is well, and keeps nothing. The API server beside it has everything in memory.

use std::process::ExitCode;

use fs_err as fs;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    Error,
    flags::{Flag, Given, help, switch, value},
    until_the_end, warn,
};

const FLAGS: &[Flag] = &[
    value("listen-client-urls", "Where /health is answered; http://localhost:2379 unless given"),
    value("data-dir", "Made, as etcd makes it, and left empty"),
    value("advertise-client-urls", "Taken"),
    value("listen-peer-urls", "Taken: there are no peers"),
    value("initial-advertise-peer-urls", "Taken"),
    value("initial-cluster", "Taken"),
    value("name", "Taken"),
    value("log-level", "Taken"),
    value("logger", "Taken"),
    value("quota-backend-bytes", "Taken"),
    switch("unsafe-no-fsync", "Taken: nothing is written"),
];

/// How long the head of a request may be.
const HEAD: usize = 16 * 1024;

const VERSION: &str = "3.6.0";

pub(super) fn run(arguments: impl IntoIterator<Item = String>) -> Result<ExitCode, Error> {
    let given = Given::parse(FLAGS, arguments);
    if given.help || given.version {
        let text = if given.help { help("etcd", FLAGS) } else { format!("etcd Version: {VERSION}\n") };
        anstream::print!("{text}");
        return Ok(ExitCode::SUCCESS);
    }
    for name in &given.unknown {
        warn(format_args!("the flag --{name} is not known here, and has no effect"));
    }
    if let Some(folder) = given.last("data-dir") {
        fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.into(), source })?;
    }
    let mut urls = given.list("listen-client-urls");
    if urls.is_empty() {
        urls.push("http://localhost:2379".to_owned());
    }
    until_the_end(serve(urls))
}

/// The address of a URL without TLS.
fn address(url: &str) -> Result<String, Error> {
    let wrong =
        |why: &str| Error::Flag { flag: "listen-client-urls", value: url.to_owned(), why: why.to_owned() };
    match url.split_once("://") {
        Some(("http", rest)) => Ok(rest.trim_end_matches('/').to_owned()),
        Some(_) => Err(wrong("only http:// is served here")),
        None => Err(wrong("write http://HOST:PORT")),
    }
}

async fn serve(urls: Vec<String>) -> Result<(), Error> {
    let mut all = JoinSet::new();
    for url in urls {
        let address = address(&url)?;
        let listener = TcpListener::bind(&address).await;
        let listener = listener.map_err(|source| Error::Listen { address, source })?;
        all.spawn(async move {
            loop {
                // What fails here passes when connections close.
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(answer(stream));
                }
            }
        });
    }
    while all.join_next().await.is_some() {}
    Ok(())
}

/// Answers one request, whatever it is, and closes the connection.
async fn answer(mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD {
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return,
            Ok(count) => head.extend_from_slice(&part[..count]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = page(path.split('?').next().unwrap_or_default());
    let kind = if body.starts_with('{') { "application/json" } else { "text/plain; charset=utf-8" };
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // Whoever does not wait for the answer does not need it.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn page(path: &str) -> (&'static str, String) {
    match path {
        "/health" => ("200 OK", r#"{"health":"true","reason":""}"#.to_owned()),
        "/version" => ("200 OK", format!(r#"{{"etcdserver":"{VERSION}","etcdcluster":"{VERSION}"}}"#)),
        "/livez" | "/readyz" => ("200 OK", "ok\n".to_owned()),
        _ => ("404 Not Found", "404 page not found\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_a_plain_url() {
        assert_eq!(address("http://127.0.0.1:2379/").unwrap(), "127.0.0.1:2379");
        assert!(address("https://a:1").unwrap_err().to_string().contains("only http://"));
        assert!(address("a:1").is_err());
    }

    #[test]
    fn it_is_well() {
        assert_eq!(page("/health"), ("200 OK", r#"{"health":"true","reason":""}"#.to_owned()));
        assert_eq!(page("/v3/kv/range").0, "404 Not Found");
    }
}
