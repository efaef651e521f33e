//! The certificate of the server: the one of its folder, or a new one, which is left there as kube-apiserver leaves it.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use fs_err as fs;
use windlass::jiff::Timestamp;
use windlass_cluster::Authority;

use super::Error;

/// The names that kube-apiserver gives to its files.
const CERTIFICATE: &str = "apiserver.crt";
const KEY: &str = "apiserver.key";

/// A certificate with what leads to its authority, and its key, both PEM.
pub(super) struct Pair {
    pub(super) certificates: String,
    pub(super) key: String,
}

impl Pair {
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
        };
        Ok(Self { certificates: read(certificate)?, key: read(key)? })
    }

    /// A new one for a server at this address.
    pub(super) fn make(address: IpAddr) -> Result<Self, Error> {
        let failed = |error| Error::Certificate(Box::new(error));
        let authority = Authority::new(Timestamp::now()).map_err(failed)?;
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        names.extend(
            [
                "kubernetes",
                "kubernetes.default",
                "kubernetes.default.svc",
                "kubernetes.default.svc.cluster.local",
            ]
            .map(str::to_owned),
        );
        let own = address.to_string();
        if !address.is_unspecified() && !names.contains(&own) {
            names.push(own);
        }
        let made = authority.server(&names).map_err(failed)?;
        Ok(Self { certificates: made.certificate + &authority.certificate(), key: made.key })
    }

    /// The one of a folder. Without one it is made there: the certificate, with its authority's behind it, and the key.
    pub(super) fn of_folder(folder: &Path, address: IpAddr) -> Result<Self, Error> {
        let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
        if certificate.exists() && key.exists() {
            return Self::read(&certificate, &key);
        }
        let made = Self::make(address)?;
        let failed = |path: &Path| {
            let path: PathBuf = path.to_owned();
            move |source| Error::Write { path, source }
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        fs::write(&certificate, &made.certificates).map_err(failed(&certificate))?;
        crate::platform::write_secret(&key, &made.key).map_err(failed(&key))?;
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_the_certificate_that_was_made_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let address = IpAddr::from([127, 0, 0, 1]);
        let first = Pair::of_folder(&folder.path().join("certs"), address).unwrap();
        let second = Pair::of_folder(&folder.path().join("certs"), address).unwrap();
        assert_eq!((first.certificates.clone(), first.key), (second.certificates, second.key));
        assert_eq!(first.certificates.matches("BEGIN CERTIFICATE").count(), 2, "with its authority's");
    }
}
