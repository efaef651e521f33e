//! As much of a browser as the tests need: requests with chosen headers, and a stream of events.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Nothing here takes long; this is for machines that are very busy.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct Browser {
    pub(crate) host: String,
    pub(crate) token: String,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Browser {
    pub(crate) fn new(url: &str) -> Self {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, token) = rest.split_once("/?token=").unwrap();
        Self { host: host.to_owned(), token: token.to_owned() }
    }

    fn cookie(&self) -> String {
        let port = self.host.rsplit_once(':').unwrap().1;
        format!("Cookie: windlass-page-{port}={}\r\n", self.token)
    }

    /// A request as the page makes it.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n",
            self.host,
            self.cookie()
        ))
        .await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        let (host, cookie, length) = (&self.host, self.cookie(), body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{cookie}x-windlass-page: 1\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        self.raw(&(head + body)).await
    }

    /// Any request.
    pub(crate) async fn raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// The stream of what happens.
    pub(crate) async fn events(&self) -> Events {
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        let request = format!("GET /events HTTP/1.1\r\nHost: {}\r\n{}\r\n", self.host, self.cookie());
        stream.write_all(request.as_bytes()).await.unwrap();
        Events { stream, text: String::new() }
    }
}

/// What has been heard so far.
pub(crate) struct Events {
    stream: TcpStream,
    pub(crate) text: String,
}

impl Events {
    /// Listens until all that was heard satisfies a test.
    pub(crate) async fn until(&mut self, what: &str, test: impl Fn(&str) -> bool) {
        let listen = async {
            let mut buffer = vec![0; 65536];
            while !test(&self.text) {
                let length = self.stream.read(&mut buffer).await.unwrap();
                assert!(length > 0, "the stream ended before {what}");
                self.text.push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        };
        tokio::time::timeout(TIMEOUT, listen).await.unwrap_or_else(|_| panic!("not seen: {what}"));
    }

    /// Until everything that is there has been told.
    pub(crate) async fn whole(&mut self) {
        self.until("the whole cluster", |text| text.contains("\"whole\":true")).await;
    }

    pub(crate) fn forget(&mut self) {
        self.text.clear();
    }
}
