//! Who we are to a registry: what docker and podman have been told, their helper programs among it.
//!
//! Enters the environment, or a name and a password; leaves a login, or nothing for anybody. Secrets are never printed.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use tokio::io::AsyncWriteExt;

use crate::Reference;

/// How long a helper may take: it may ask a person.
const TIMEOUT: Duration = Duration::from_mins(1);
/// What docker calls its own registry in its files.
const DOCKER: &str = "https://index.docker.io/v1/";

/// A name and a password, or a token in their place.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    /// A name and a password.
    Password {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
    /// A token that other tokens are given for.
    IdentityToken(String),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { username, .. } => write!(f, "Password({username:?}, ...)"),
            Self::IdentityToken(_) => f.write_str("IdentityToken(...)"),
        }
    }
}

/// Why a login could not be looked up.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file of docker or podman cannot be read.
    #[error("failed to read the credentials {}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A helper program is not there, or fails.
    #[error("failed to ask the credential helper {program} for {registry}: {why}")]
    Helper {
        /// The program.
        program: String,
        /// What it was asked for.
        registry: String,
        /// What it said.
        why: String,
    },
}

impl CredentialsError {
    pub(super) fn hint(&self) -> String {
        match self {
            Self::File { path, .. } => format!("mend or remove {}; `docker login` writes it", path.display()),
            Self::Helper { program, .. } => {
                format!("is {program} in the PATH? Or give --username and --password-stdin")
            }
        }
    }
}

/// Where logins are looked up.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    given: Option<Login>,
    files: Vec<(PathBuf, File)>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    auths: BTreeMap<String, Entry>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entry(...)")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Helped {
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

impl Keyring {
    /// One login for every registry.
    pub fn of(username: String, password: String) -> Self {
        Self { given: Some(Login::Password { username, password }), files: Vec::new() }
    }

    /// What docker and podman have been told, by `variable` of the environment and in this home. A file that is not there
    /// is passed over; one that cannot be read is an error, since the login in it would be missed.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<OsString>,
        home: Option<&Path>,
    ) -> Result<Self, CredentialsError> {
        let mut keyring = Self::default();
        for path in places(variable, home) {
            let content = match fs_err::read(&path) {
                Ok(content) => content,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(CredentialsError::File { path, why: error.kind().to_string() }),
            };
            let file = serde_json::from_slice(&content)
                // Where, but not what: a secret may stand there.
                .map_err(|error| CredentialsError::File {
                    path: path.clone(),
                    why: format!("no JSON at line {}", error.line()),
                })?;
            keyring.files.push((path, file));
        }
        Ok(keyring)
    }

    /// The login for an image's repository, if there is one.
    pub async fn find(&self, reference: &Reference) -> Result<Option<Login>, CredentialsError> {
        if self.given.is_some() {
            return Ok(self.given.clone());
        }
        for (path, file) in &self.files {
            let found = file.find(path, reference).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// The files, the most particular first.
fn places(variable: impl Fn(&str) -> Option<OsString>, home: Option<&Path>) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let docker = set("DOCKER_CONFIG").or_else(|| Some(home?.join(".docker")));
    let config = set("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config")));
    [
        set("REGISTRY_AUTH_FILE"),
        docker.map(|folder| folder.join("config.json")),
        set("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json")),
        config.map(|folder| folder.join("containers/auth.json")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What a registry is called in these files.
fn server(reference: &Reference) -> &str {
    if reference.registry() == "docker.io" { DOCKER } else { reference.registry() }
}

impl File {
    async fn find(&self, path: &Path, reference: &Reference) -> Result<Option<Login>, CredentialsError> {
        let helper =
            self.cred_helpers.get(server(reference)).or_else(|| self.cred_helpers.get(reference.registry()));
        // The helper of one registry goes before everything, as docker has it; a store before what is written here.
        if let Some(helper) = helper {
            return ask(helper, server(reference)).await;
        }
        if let Some(store) = self.creds_store.as_ref().filter(|store| !store.is_empty()) {
            let found = ask(store, server(reference)).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let wrong = |why: &str| CredentialsError::File { path: path.to_owned(), why: why.to_owned() };
        names(reference).iter().find_map(|name| self.entry(name)).map_or(Ok(None), |entry| entry.login(wrong))
    }

    /// The entry of a name, which old files write as a URL.
    fn entry(&self, name: &str) -> Option<&Entry> {
        self.auths.get(name).or_else(|| {
            let plain = |key: &str| {
                let key = key.trim_start_matches("https://").trim_start_matches("http://");
                let key = key.trim_end_matches('/');
                key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key).to_owned()
            };
            self.auths
                .iter()
                .find(|(key, _)| key.contains("://") && plain(key) == name)
                .map(|(_, entry)| entry)
        })
    }
}

/// What the entry of an image may be called: podman keeps logins of single repositories too.
fn names(reference: &Reference) -> Vec<String> {
    let whole = reference.name();
    let mut names: Vec<String> = vec![whole.clone()];
    names.extend(whole.rmatch_indices('/').map(|(at, _)| whole[..at].to_owned()));
    if reference.registry() == "docker.io" {
        names.extend([DOCKER.into(), "index.docker.io".into()]);
    }
    names
}

impl Entry {
    fn login(&self, wrong: impl Fn(&str) -> CredentialsError) -> Result<Option<Login>, CredentialsError> {
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(token) = filled(&self.identitytoken) {
            return Ok(Some(Login::IdentityToken(token)));
        }
        if let Some((username, password)) = filled(&self.username).zip(filled(&self.password)) {
            return Ok(Some(Login::Password { username, password }));
        }
        let Some(auth) = filled(&self.auth) else { return Ok(None) };
        let decoded = STANDARD.decode(auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let decoded = decoded.ok_or_else(|| wrong("an `auth` in it is no base64"))?;
        let (username, password) =
            decoded.split_once(':').ok_or_else(|| wrong("an `auth` in it has no password"))?;
        let password = password.trim_end_matches('\0');
        Ok(Some(Login::Password { username: username.into(), password: password.into() }))
    }
}

/// Asks a helper program, as docker does: the registry on its standard input, JSON on its standard output.
async fn ask(helper: &str, registry: &str) -> Result<Option<Login>, CredentialsError> {
    let program = format!("docker-credential-{helper}");
    let failed =
        |why: String| CredentialsError::Helper { program: program.clone(), registry: registry.into(), why };
    let mut command = tokio::process::Command::new(&program);
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut running = command.spawn().map_err(|error| failed(error.to_string()))?;
    let mut input = running.stdin.take();
    let exchange = async {
        if let Some(input) = &mut input {
            // One that does not read its input may answer all the same.
            let _ = input.write_all(registry.as_bytes()).await;
        }
        drop(input);
        running.wait_with_output().await
    };
    let output = tokio::time::timeout(TIMEOUT, exchange).await;
    let output = output.map_err(|_| failed(format!("no answer within {} s", TIMEOUT.as_secs())))?;
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // The words of docker's own helpers, by which docker goes too.
        if said.contains("credentials not found") {
            return Ok(None);
        }
        let said = said.lines().map(str::trim).find(|line| !line.is_empty());
        return Err(failed(said.map_or_else(|| output.status.to_string(), str::to_owned)));
    }
    let helped: Helped = serde_json::from_slice(&output.stdout)
        .map_err(|_| failed("its answer is no JSON of a login".into()))?;
    Ok(match helped.username.as_str() {
        _ if helped.secret.is_empty() => None,
        "<token>" => Some(Login::IdentityToken(helped.secret)),
        _ => Some(Login::Password { username: helped.username, password: helped.secret }),
    })
}

#[cfg(test)]
mod tests;
