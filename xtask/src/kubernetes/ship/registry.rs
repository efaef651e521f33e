//! The real registry, built from source by Go, on the loopback of a testbed's box.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use crate::kubernetes::inside;
use crate::kubernetes::layout::Layout;
use crate::kubernetes::process::Identity;

pub(super) const USER: &str = "author";
pub(super) const PASSWORD: &str = "correct horse";
/// What `htpasswd -B` makes of the two.
const HTPASSWD: &str = "author:$2a$04$lkUHC/7Nn.VYaFmxvXkrmeBZP2nZUC3euA8F5lOYsHfOQXiHmHRgC\n";

/// A registry, which ends with the value.
pub(super) struct Registry {
    process: Child,
    /// `127.0.0.1:5000`
    pub(super) address: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Registry {
    /// Lets everybody in.
    pub(super) fn open(layout: &Layout, inner: Identity) -> Result<Self> {
        Self::start(layout, inner, 5000, false)
    }

    /// Asks for the name and the password.
    pub(super) fn closed(layout: &Layout, inner: Identity) -> Result<Self> {
        Self::start(layout, inner, 5001, true)
    }

    fn start(layout: &Layout, inner: Identity, port: u16, password: bool) -> Result<Self> {
        let folder = layout.path(&format!("registry-{port}"));
        fs::create_dir_all(&folder)?;
        let program = folder.join("registry");
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("registry");
        let mut go = Command::new("go");
        go.current_dir(module).env("CGO_ENABLED", "0").args(["build", "-mod=readonly", "-o"]).arg(&program);
        go.arg("github.com/distribution/distribution/v3/cmd/registry");
        ensure!(go.status().context("failed to start `go`")?.success(), "failed to build the registry");
        let (config, place) = (folder.join("config.yaml"), folder.display());
        let address = format!("{}:{port}", Ipv4Addr::LOCALHOST);
        let mut text = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {place}/data}}}}\nhttp: {{addr: {address}}}\n"
        );
        if password {
            fs::write(folder.join("htpasswd"), HTPASSWD)?;
            text.push_str(
                &["auth: {htpasswd: {realm: testbed, path: ", &place.to_string(), "/htpasswd}}\n"].concat(),
            );
        }
        fs::write(&config, text)?;
        let log = fs::File::create(folder.join("log"))?.into_parts().0;
        let mut serve = inside::nsenter(inner, false, &program);
        serve.arg("serve").arg(&config).env("OTEL_TRACES_EXPORTER", "none");
        serve.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self { process: serve.spawn().context("failed to start the registry")?, address })
    }
}
