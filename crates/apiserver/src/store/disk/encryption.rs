//! Encryption at rest: what becomes of an object on its way to the disk and back, by an `EncryptionConfiguration` as
//! kube-apiserver reads it.
//!
//! The first provider writes, all of them read. What is encrypted begins, as in etcd, with `k8s:enc:`, the provider and the
//! name of the key; a nonce and the sealed object follow. It is bound to its place: under another name it does not open. Names,
//! labels and selectable fields stay readable; what is in an object does not.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use ring::{
    aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use serde::Deserialize;
use serde_json::Value;

use super::super::{Key, TableName};

/// What everything begins with that is encrypted. An object begins with a brace.
pub(super) const SEALED: &[u8] = b"k8s:enc:";

const GCM: &str = "k8s:enc:aesgcm:v1:";

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
#[error("the encryption configuration is wrong: {0}")]
pub struct EncryptionError(String);

/// Which objects are encrypted, and how.
#[derive(Debug)]
pub struct Encryption {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    resources: Vec<String>,
    providers: Vec<Provider>,
}

#[derive(Debug)]
enum Provider {
    Identity,
    AesGcm(Vec<NamedKey>),
}

struct NamedKey {
    /// What a value begins with that was sealed with it.
    prefix: String,
    name: String,
    key: LessSafeKey,
}

impl std::fmt::Debug for NamedKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must never reach a log.
        formatter.debug_struct("NamedKey").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    api_version: String,
    kind: String,
    resources: Vec<FileRule>,
}

#[derive(Deserialize)]
struct FileRule {
    resources: Vec<String>,
    providers: Vec<serde_json::Map<String, Value>>,
}

impl Encryption {
    /// The configuration of a file.
    pub fn parse(text: &str) -> Result<Self, EncryptionError> {
        // Nothing of the file may be told: it holds keys.
        let file: File = serde_saphyr::from_str(text).map_err(|_| {
            EncryptionError("it is not an EncryptionConfiguration with resources and providers".into())
        })?;
        if file.kind != "EncryptionConfiguration" || file.api_version != "apiserver.config.k8s.io/v1" {
            let why = "it is not an EncryptionConfiguration of apiserver.config.k8s.io/v1";
            return Err(EncryptionError(why.into()));
        }
        let mut rules = Vec::new();
        for (number, rule) in file.resources.iter().enumerate() {
            let wrong = |why: String| EncryptionError(format!("resources[{number}]: {why}"));
            if rule.resources.is_empty() || rule.providers.is_empty() {
                return Err(wrong("it needs resources and providers".into()));
            }
            let providers = rule.providers.iter().map(provider).collect::<Result<_, _>>().map_err(wrong)?;
            rules.push(Rule { resources: rule.resources.clone(), providers });
        }
        Ok(Self { rules })
    }

    fn providers(&self, table: &TableName) -> &[Provider] {
        let rule = self.rules.iter().find(|rule| rule.resources.iter().any(|name| covers(name, table)));
        rule.map_or(&[Provider::Identity], |rule| &rule.providers)
    }

    /// What the disk is given for an object.
    pub(super) fn seal(&self, table: &TableName, key: &Key, bytes: &Bytes) -> Bytes {
        let Some(Provider::AesGcm(keys)) = self.providers(table).first() else { return bytes.clone() };
        let Some(named) = keys.first() else { return bytes.clone() };
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).expect("the system must have random bytes");
        let mut sealed = bytes.to_vec();
        let aad = Aad::from(place(table, key));
        named
            .key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .expect("an object must be shorter than what a key can seal");
        [named.prefix.as_bytes(), &nonce, &sealed].concat().into()
    }

    /// What the disk has as an object, and whether it would be written in the same way now.
    pub(super) fn open(&self, table: &TableName, key: &Key, bytes: &Bytes) -> Result<(Bytes, bool), String> {
        let providers = self.providers(table);
        for (number, provider) in providers.iter().enumerate() {
            match provider {
                Provider::Identity if !bytes.starts_with(SEALED) => return Ok((bytes.clone(), number == 0)),
                Provider::Identity => {}
                Provider::AesGcm(keys) => {
                    for (place_of_key, named) in keys.iter().enumerate() {
                        let Some(sealed) = bytes.strip_prefix(named.prefix.as_bytes()) else { continue };
                        let opened = named.open(table, key, sealed).ok_or_else(|| {
                            format!("the key {:?} does not open it: it is another key than then", named.name)
                        })?;
                        return Ok((opened, number == 0 && place_of_key == 0));
                    }
                }
            }
        }
        Err(unknown(bytes))
    }
}

impl NamedKey {
    fn open(&self, table: &TableName, key: &Key, sealed: &[u8]) -> Option<Bytes> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.key.open_in_place(nonce, Aad::from(place(table, key)), &mut sealed).ok()?;
        Some(Bytes::copy_from_slice(opened))
    }
}

/// Why nobody can open it.
pub(super) fn unknown(bytes: &[u8]) -> String {
    match bytes.strip_prefix(SEALED) {
        // The provider, its version and the name of the key.
        Some(rest) => {
            let words: Vec<_> =
                rest.splitn(4, |byte| *byte == b':').take(3).map(String::from_utf8_lossy).collect();
            format!("it is encrypted ({}), and no provider with that key is configured", words.join(":"))
        }
        None => "it is not encrypted, and the provider identity is not configured".into(),
    }
}

fn place(table: &TableName, key: &Key) -> Vec<u8> {
    format!("/{}/{}/{}/{}", table.group, table.plural, key.namespace, key.name).into_bytes()
}

/// `secrets`, `things.example.com`, `*.example.com`, `*.` for the core group, `*.*`.
fn covers(name: &str, table: &TableName) -> bool {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let any = name == "*.*";
    any || (group == &*table.group && (plural == &*table.plural || (plural == "*" && name.contains('.'))))
}

fn provider(provider: &serde_json::Map<String, Value>) -> Result<Provider, String> {
    let mut entries = provider.iter();
    let (Some((name, options)), None) = (entries.next(), entries.next()) else {
        return Err("a provider is one word, such as aesgcm or identity".into());
    };
    match name.as_str() {
        "identity" => Ok(Provider::Identity),
        "aesgcm" => {
            let keys = options["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
            if keys.is_empty() {
                return Err("aesgcm needs keys".into());
            }
            Ok(Provider::AesGcm(keys.iter().map(named_key).collect::<Result<_, _>>()?))
        }
        "aescbc" | "secretbox" | "kms" => {
            Err(format!("the provider {name} is not supported; aesgcm is, with a key of 16 or 32 bytes"))
        }
        other => Err(format!("there is no provider {other:?}")),
    }
}

fn named_key(key: &Value) -> Result<NamedKey, String> {
    let name = key["name"].as_str().filter(|name| !name.is_empty() && !name.contains(':'));
    let name = name.ok_or("a key needs a name without a colon")?.to_owned();
    let secret = key["secret"].as_str().and_then(|secret| STANDARD.decode(secret.trim()).ok());
    let secret = secret.ok_or_else(|| format!("the secret of the key {name:?} is not base64"))?;
    let algorithm = match secret.len() {
        16 => &AES_128_GCM,
        32 => &AES_256_GCM,
        length => return Err(format!("the key {name:?} has {length} bytes; aesgcm takes 16 or 32")),
    };
    let unbound =
        UnboundKey::new(algorithm, &secret).map_err(|_| format!("the key {name:?} cannot be used"))?;
    Ok(NamedKey { prefix: format!("{GCM}{name}:"), name, key: LessSafeKey::new(unbound) })
}

#[cfg(test)]
mod tests;
