//! Names of objects and images.

/// Whether a name can be a Service's: at most 63 lower-case letters, digits and '-', starting with a letter.
pub(crate) fn is_dns_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(inner)
}

/// Whether an image's reference leaves open which version runs: no tag, or `latest`, and no digest.
pub(crate) fn is_floating(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    // A colon before the last slash belongs to a registry's port.
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}
