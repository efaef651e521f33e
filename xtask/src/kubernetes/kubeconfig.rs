//! Kubeconfig files: the CA and a client certificate embedded, so that one file is all a client needs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::certs::Pair;

/// Renders the kubeconfig of `user` for the API server at `server`.
pub(super) fn render(context: &str, server: &str, authority: &str, user: &str, credentials: &Pair) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {context}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {context}
  context:
    cluster: {context}
    user: {user}
current-context: {context}
",
        authority = STANDARD.encode(authority),
        certificate = STANDARD.encode(&credentials.certificate),
        key = STANDARD.encode(&credentials.key),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_verifies_the_server_and_carries_its_keys() {
        let pair = Pair { certificate: "CERT".to_owned(), key: "KEY".to_owned() };
        let text = render("testbed", "https://10.99.0.2:6443", "CA", "admin", &pair);
        assert!(text.contains("server: https://10.99.0.2:6443\n"));
        assert!(text.contains(&format!("certificate-authority-data: {}\n", STANDARD.encode("CA"))));
        assert!(text.contains(&format!("client-key-data: {}\n", STANDARD.encode("KEY"))));
        assert!(!text.contains("insecure"));
    }
}
