//! The real registry, built from source by Go and started on a free port of the loopback.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

pub(crate) const USER: &str = "author";
pub(crate) const PASSWORD: &str = "correct horse";
/// What `htpasswd -B` makes of the two.
const HTPASSWD: &str = "author:$2a$04$lkUHC/7Nn.VYaFmxvXkrmeBZP2nZUC3euA8F5lOYsHfOQXiHmHRgC\n";

/// What a registry asks for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kind {
    pub(crate) password: bool,
    pub(crate) tls: bool,
}

/// A registry that ends with the value.
pub(crate) struct Registry {
    pub(crate) address: String,
    folder: tempfile::TempDir,
    process: Child,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Registry {
    pub(crate) fn start(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let config = folder.path().join("config.yaml");
        fs::write(&config, configuration(folder.path(), &address, kind)).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(program());
        command.arg("serve").arg(&config).env("OTEL_TRACES_EXPORTER", "none");
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let registry = Self { address, folder, process: command.spawn().unwrap() };
        let begin = Instant::now();
        while TcpStream::connect(&registry.address).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(30), "{}", registry.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        registry
    }

    pub(crate) fn plain() -> Self {
        Self::start(Kind::default())
    }

    /// The authority that signed its certificate.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

fn configuration(folder: &Path, address: &str, kind: Kind) -> String {
    let place = folder.display();
    let mut text = format!(
        "version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: {place}/data}}}}\nhttp:\n  addr: {address}\n"
    );
    if kind.tls {
        certificates(folder);
        text += &format!("  tls: {{certificate: {place}/server.pem, key: {place}/server.key}}\n");
    }
    if kind.password {
        fs::write(folder.join("htpasswd"), HTPASSWD).unwrap();
        text += &format!("auth: {{htpasswd: {{realm: a registry, path: {place}/htpasswd}}}}\n");
    }
    text
}

fn certificates(folder: &Path) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(folder.join("ca.pem"), authority.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    fs::write(folder.join("server.pem"), server.signed_by(&key, &issuer).unwrap().pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}

/// Builds it once; Go's cache makes every other time cheap.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/registry");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("registry");
        let mut go = Command::new("go");
        go.arg("build").arg("-o").arg(&program).arg("github.com/distribution/distribution/v3/cmd/registry");
        let status = go.current_dir(module).env("CGO_ENABLED", "0").status().expect("go must be installed");
        assert!(status.success(), "go build ended with {status}");
        program
    })
}
