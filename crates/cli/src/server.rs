//! From the flags of an API server to what it is made with: files are read and checked here.

mod args;
mod tokens;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use fs_err as fs;
use windlass_cluster::{
    Access, Algorithm, AuditOptions, Encryption, EncryptionError, OidcError, OidcOptions, Policy, PolicyError,
};

pub(crate) use self::args::ServerArgs;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("failed to read tokens from {}: line {line} is no token,user,uid[,\"group,group\"]", path.display())]
    Tokens { path: PathBuf, line: usize },
    #[error("failed to use {}", path.display())]
    Policy { path: PathBuf, source: PolicyError },
    #[error("failed to use {}", path.display())]
    Encryption { path: PathBuf, source: EncryptionError },
    #[error("failed to use the issuer of OpenID Connect")]
    Oidc(#[source] OidcError),
    #[error("failed to understand --{flag} {value:?}: {why}")]
    Flag { flag: &'static str, value: String, why: &'static str },
}

/// What the flags ask for.
pub(crate) fn access(args: &ServerArgs) -> Result<Access, Error> {
    let tokens = args.token_auth_file.as_deref().map(tokens::read).transpose()?.unwrap_or_default();
    let encryption = args.encryption_provider_config.as_deref().map(encryption).transpose()?;
    Ok(Access { tokens, audit: audit(args)?, oidc: oidc(args)?, encryption, ..Access::default() })
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn encryption(path: &Path) -> Result<Arc<Encryption>, Error> {
    let parsed = Encryption::parse(&read(path)?);
    Ok(Arc::new(parsed.map_err(|source| Error::Encryption { path: path.to_owned(), source })?))
}

fn audit(args: &ServerArgs) -> Result<Option<AuditOptions>, Error> {
    let (Some(policy), Some(log)) = (&args.audit_policy_file, &args.audit_log_path) else { return Ok(None) };
    let parsed = Policy::parse(&read(policy)?);
    let parsed = parsed.map_err(|source| Error::Policy { path: policy.clone(), source })?;
    Ok(Some(AuditOptions {
        max_size: args.audit_log_maxsize,
        max_backups: args.audit_log_maxbackup,
        max_age: args.audit_log_maxage,
        ..AuditOptions::new(parsed, log)
    }))
}

fn oidc(args: &ServerArgs) -> Result<Option<OidcOptions>, Error> {
    let Some(issuer) = &args.oidc_issuer_url else { return Ok(None) };
    let client = args.oidc_client_id.as_deref().unwrap_or_default();
    let mut options = OidcOptions::new(issuer, client).map_err(Error::Oidc)?;
    options.authorities = args.oidc_ca_file.as_deref().map(read).transpose()?;
    if let Some(claim) = &args.oidc_username_claim {
        options.username_claim.clone_from(claim);
    }
    options.username_prefix.clone_from(&args.oidc_username_prefix);
    options.groups_claim.clone_from(&args.oidc_groups_claim);
    options.groups_prefix = args.oidc_groups_prefix.clone().unwrap_or_default();
    for required in &args.oidc_required_claim {
        let (claim, value) = required.split_once('=').ok_or_else(|| Error::Flag {
            flag: "oidc-required-claim",
            value: required.clone(),
            why: "write CLAIM=VALUE",
        })?;
        options.required_claims.insert(claim.to_owned(), value.to_owned());
    }
    if !args.oidc_signing_algs.is_empty() {
        let known = |name: &String| {
            Algorithm::named(name).ok_or_else(|| Error::Flag {
                flag: "oidc-signing-algs",
                value: name.clone(),
                why: "there are RS256, RS384, RS512, PS256, PS384, PS512, ES256 and ES384",
            })
        };
        options.algorithms = args.oidc_signing_algs.iter().map(known).collect::<Result<_, _>>()?;
    }
    Ok(Some(options))
}
