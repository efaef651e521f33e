//! The flags of a cluster's API server that kube-apiserver has by the same names.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

/// Who is known to the API server, what it writes down and how it keeps Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "API server, as of kube-apiserver")]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServerArgs {
    /// A file of tokens and whose they are, a line for each: token,user,uid,"group,group"
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,

    /// Which requests are written down, and how much of them: a Policy of audit.k8s.io/v1
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    pub(crate) audit_policy_file: Option<PathBuf>,

    /// Where they are written down; - is the standard output
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    pub(crate) audit_log_path: Option<PathBuf>,

    /// How many megabytes a file of the audit log may have [default: 100]
    #[arg(long, value_name = "MEGABYTES", default_value_t = 0, hide_default_value = true)]
    pub(crate) audit_log_maxsize: u64,

    /// How many older files are kept; 0 keeps all
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    pub(crate) audit_log_maxbackup: usize,

    /// How many days older files are kept; 0 keeps them for ever
    #[arg(long, value_name = "DAYS", default_value_t = 0, hide_default_value = true)]
    pub(crate) audit_log_maxage: u64,

    /// The issuer of OpenID Connect whose tokens are taken, as in their claim `iss`
    #[arg(long, value_name = "URL", requires = "oidc_client_id")]
    pub(crate) oidc_issuer_url: Option<String>,

    /// For whom these tokens must be made: their claim `aud`
    #[arg(long, value_name = "ID", requires = "oidc_issuer_url")]
    pub(crate) oidc_client_id: Option<String>,

    /// Who has signed the issuer's certificate, as PEM [default: whom this system trusts]
    #[arg(long, value_name = "FILE")]
    pub(crate) oidc_ca_file: Option<PathBuf>,

    /// The claim that is the user's name [default: sub]
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_username_claim: Option<String>,

    /// What stands before the user's name; - is nothing [default: the issuer and #, unless the claim is email]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) oidc_username_prefix: Option<String>,

    /// The claim that has the user's groups
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_groups_claim: Option<String>,

    /// What stands before the name of a group
    #[arg(long, value_name = "PREFIX")]
    pub(crate) oidc_groups_prefix: Option<String>,

    /// A claim that tokens must have, as CLAIM=VALUE; may be repeated
    #[arg(long, value_name = "CLAIM=VALUE")]
    pub(crate) oidc_required_claim: Vec<String>,

    /// How tokens may be signed [default: RS256]
    #[arg(long, value_name = "ALGORITHM", value_delimiter = ',')]
    pub(crate) oidc_signing_algs: Vec<String>,

    /// How Secrets are encrypted in the data directory: an EncryptionConfiguration of apiserver.config.k8s.io/v1
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_provider_config: Option<PathBuf>,
}

impl ServerArgs {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same with absolute paths, so that another process means the same files.
    pub(crate) fn absolute(&self) -> std::io::Result<Self> {
        let mut all = self.clone();
        for path in [
            &mut all.token_auth_file,
            &mut all.audit_policy_file,
            &mut all.audit_log_path,
            &mut all.oidc_ca_file,
            &mut all.encryption_provider_config,
        ] {
            if let Some(path) = path.as_mut().filter(|path| path.as_os_str() != "-") {
                *path = std::path::absolute(&*path)?;
            }
        }
        Ok(all)
    }

    /// The flags again, as they would be typed.
    pub(crate) fn flags(&self) -> Vec<String> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let number = |number: u64| (number != 0).then(|| number.to_string());
        let single = [
            ("token-auth-file", path(&self.token_auth_file)),
            ("audit-policy-file", path(&self.audit_policy_file)),
            ("audit-log-path", path(&self.audit_log_path)),
            ("audit-log-maxsize", number(self.audit_log_maxsize)),
            ("audit-log-maxbackup", number(self.audit_log_maxbackup as u64)),
            ("audit-log-maxage", number(self.audit_log_maxage)),
            ("oidc-issuer-url", self.oidc_issuer_url.clone()),
            ("oidc-client-id", self.oidc_client_id.clone()),
            ("oidc-ca-file", path(&self.oidc_ca_file)),
            ("oidc-username-claim", self.oidc_username_claim.clone()),
            ("oidc-username-prefix", self.oidc_username_prefix.clone()),
            ("oidc-groups-claim", self.oidc_groups_claim.clone()),
            ("oidc-groups-prefix", self.oidc_groups_prefix.clone()),
            ("encryption-provider-config", path(&self.encryption_provider_config)),
        ];
        let repeated = |name: &'static str, values: &[String]| -> Vec<(&'static str, Option<String>)> {
            values.iter().map(|value| (name, Some(value.clone()))).collect()
        };
        let all = single.into_iter().chain(repeated("oidc-required-claim", &self.oidc_required_claim));
        let all = all.chain(repeated("oidc-signing-algs", &self.oidc_signing_algs));
        all.filter_map(|(name, value)| Some(format!("--{name}={}", value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        server: ServerArgs,
    }

    #[test]
    fn another_process_is_told_everything() {
        let line = "x --token-auth-file /a --audit-policy-file /b --audit-log-path - --audit-log-maxsize 1 \
                    --audit-log-maxbackup 2 --audit-log-maxage 3 --oidc-issuer-url https://i --oidc-client-id c \
                    --oidc-ca-file /d --oidc-username-claim e --oidc-username-prefix - --oidc-groups-claim g \
                    --oidc-groups-prefix p: --oidc-required-claim a=b --oidc-required-claim c=d \
                    --oidc-signing-algs RS256,ES256 --encryption-provider-config /e";
        let given = Line::try_parse_from(line.split_whitespace()).ok().unwrap().server;
        let flags = given.absolute().unwrap().flags();
        let again = Line::try_parse_from(["x".to_owned()].into_iter().chain(flags)).ok().unwrap().server;
        assert_eq!(again, given);
        assert!(
            serde_json::to_value(&given).unwrap().as_object().unwrap().values().all(|value| !value.is_null())
        );
        assert!(ServerArgs::default().flags().is_empty());
    }
}
