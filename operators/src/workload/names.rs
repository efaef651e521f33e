//! Names of objects and images.

/// Whether a name can be a Service's: at most 63 lower-case letters, digits and '-', starting with a letter.
pub(crate) fn is_dns_label(name: &str) -> bool {
    windlass::apimachinery::names::is_dns1035_label(name)
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
