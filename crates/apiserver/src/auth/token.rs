//! Service account tokens: JSON web tokens that this server signs and recognises, with ES256.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
    },
};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::data_directory::{self, DataDirectory};

/// Who the tokens say has issued them, and for whom they are unless they say otherwise.
pub const ISSUER: &str = "https://kubernetes.default.svc";

/// The beginning of a P-256 key in a SubjectPublicKeyInfo; the point follows.
const KEY_INFO: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Why there is no signing key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system gave no key.
    #[error("failed to make a key for service account tokens")]
    Generate,
    /// The kept key is none.
    #[error(
        "the key for service account tokens in {directory}/keys/service-account.key cannot be used: restore it from a \
         copy, or remove it for a new one, which ends all tokens from before"
    )]
    Kept {
        /// The data directory.
        directory: String,
    },
    /// The data directory cannot keep the key.
    #[error(transparent)]
    Directory(#[from] data_directory::Error),
}

/// Signs tokens and recognises its own.
pub struct Signer {
    key: EcdsaKeyPair,
    id: String,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must never reach a log.
        formatter.debug_struct("Signer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Signer {
    /// A signer with a new key. Keys come from the system, never from a seed.
    pub fn generate() -> Result<Self, Error> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self::from_pkcs8(document.map_err(|_| Error::Generate)?.as_ref()).ok_or(Error::Generate)
    }

    /// The signer of a data directory: tokens outlive the process.
    pub fn kept(directory: &DataDirectory) -> Result<Self, Error> {
        let pem = directory.keep("service-account.key", || -> Result<_, Error> {
            Ok(rcgen::KeyPair::generate().map_err(|_| Error::Generate)?.serialize_pem())
        })?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).ok();
        let signer = key.and_then(|key| Self::from_pkcs8(key.secret_pkcs8_der()));
        signer.ok_or_else(|| Error::Kept { directory: directory.path().display().to_string() })
    }

    fn from_pkcs8(document: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document, &random).ok()?;
        let info = [&KEY_INFO[..], key.public_key().as_ref()].concat();
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(info));
        Some(Self { key, id })
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"alg": "ES256", "kid": self.id});
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encoded(&header), encoded(claims));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token that this signer has signed.
    pub fn verify(&self, token: &str) -> Result<Value, Unrecognised> {
        let (signed, signature) = token.rsplit_once('.').ok_or(Unrecognised::Foreign)?;
        let (header, claims) = signed.split_once('.').ok_or(Unrecognised::Foreign)?;
        let decoded = |part: &str| -> Option<Value> {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
        };
        let header = decoded(header).ok_or(Unrecognised::Foreign)?;
        let claims = decoded(claims).ok_or(Unrecognised::Foreign)?;
        if !matches!(claims["iss"].as_str(), Some(ISSUER | LEGACY_ISSUER)) {
            return Err(Unrecognised::Foreign);
        }
        // Whatever the header claims: only this algorithm is ever tried.
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Unrecognised::Forged)?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref());
        let genuine = header["alg"] == "ES256" && key.verify(signed.as_bytes(), &signature).is_ok();
        if genuine { Ok(claims) } else { Err(Unrecognised::Forged) }
    }

    /// The public key, for others who want to check tokens.
    pub fn key_set(&self) -> Value {
        let point = self.key.public_key().as_ref();
        // An uncompressed point: a byte that says so, then both coordinates.
        let (x, y) = point[1..].split_at(32);
        json!({"keys": [{"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)}]})
    }
}

/// The issuer of tokens in Secrets.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// Why a token is not one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecognised {
    /// It does not claim to be.
    Foreign,
    /// It claims to be.
    Forged,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_signer_alone() {
        let (one, other) = (Signer::generate().unwrap(), Signer::generate().unwrap());
        let claims = json!({"iss": ISSUER, "sub": "me"});
        let token = one.sign(&claims).unwrap();
        assert_eq!(one.verify(&token), Ok(claims));
        assert_eq!(other.verify(&token), Err(Unrecognised::Forged));
        assert_eq!(one.verify("a.b.c"), Err(Unrecognised::Foreign));
        assert_eq!(one.verify(""), Err(Unrecognised::Foreign));
        let (_, rest) = token.split_once('.').unwrap();
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        assert_eq!(one.verify(&format!("{none}.{rest}")), Err(Unrecognised::Forged));
        assert!(!format!("{one:?}").contains("key:"));
    }

    #[test]
    fn a_kept_key_recognises_tokens_from_before() {
        let folder = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(folder.path()).unwrap();
        let token = Signer::kept(&directory).unwrap().sign(&json!({"iss": ISSUER})).unwrap();
        assert!(Signer::kept(&directory).unwrap().verify(&token).is_ok());
        std::fs::write(folder.path().join("keys/service-account.key"), "SECRET").unwrap();
        let error = Signer::kept(&directory).unwrap_err().to_string();
        assert!(error.contains("service-account.key") && !error.contains("SECRET"), "{error}");
    }
}
