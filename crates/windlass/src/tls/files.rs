//! A certificate in files that someone else renews: cert-manager, a CSI driver, a person.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Certificate, Error};
use crate::{error::chain, metrics::Metrics};

/// How often the files are looked at. A mounted Secret changes within a minute or two anyway.
const PERIOD: Duration = Duration::from_secs(10);

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesError {
    #[error("failed to read {0}")]
    Read(PathBuf, #[source] io::Error),
    #[error("failed to use {0}")]
    Unusable(PathBuf, #[source] Error),
}

/// A certificate and its key, in two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Files {
    /// The texts of both files.
    fn read(&self) -> Result<(String, String), FilesError> {
        // Two small files, most likely in memory: not worth a thread.
        let text = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| FilesError::Read(path.to_owned(), error))
        };
        Ok((text(&self.certificate)?, text(&self.key)?))
    }

    /// Reads the files for the first time: a mistake in them is to be told at the start.
    pub(crate) fn load(&self, into: &Certificate, metrics: &Metrics) -> Result<(), FilesError> {
        let loaded = self.read().and_then(|(certificate, key)| {
            let set = into.set(&certificate, &key);
            set.map_err(|error| FilesError::Unusable(self.certificate.clone(), error))
        });
        metrics.certificate_read(loaded.is_err());
        loaded
    }

    /// Reads the files again whenever their content has changed. Never returns.
    pub(crate) async fn follow(self, into: Certificate, metrics: Metrics) {
        let mut known = self.read().ok();
        loop {
            tokio::time::sleep(PERIOD).await;
            let found = self.read();
            if matches!((&found, &known), (Ok(found), Some(known)) if found == known) {
                continue;
            }
            let loaded = self.load(&into, &metrics);
            match loaded {
                Ok(()) => tracing::info!(file = %self.certificate.display(), "certificate reloaded"),
                Err(error) => tracing::warn!(error = chain(&error), "keeping the old certificate"),
            }
            known = found.ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::certificates::self_signed;

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_is_read_again_and_a_broken_one_changes_nothing() {
        let directory = std::env::temp_dir().join(format!("windlass-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let files = Files { certificate: directory.join("tls.crt"), key: directory.join("tls.key") };
        let (certificate, metrics) = (Certificate::default(), Metrics::default());
        assert!(files.load(&certificate, &metrics).unwrap_err().to_string().contains("tls.crt"));
        let write = |parts: (&str, &str)| {
            std::fs::write(&files.certificate, parts.0).unwrap();
            std::fs::write(&files.key, parts.1).unwrap();
        };
        let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        let made = || self_signed(&["op.example".into()], now).unwrap();
        let (first, second) = (made(), made());
        write((&first.0, &first.1));
        files.load(&certificate, &metrics).unwrap();
        let served = || certificate.served().unwrap();
        let before = served();
        let following = tokio::spawn(files.clone().follow(certificate.clone(), metrics.clone()));
        tokio::time::sleep(PERIOD / 2).await;
        write((&second.0, "broken"));
        tokio::time::sleep(PERIOD * 2).await;
        assert_eq!(served().cert, before.cert, "a broken key changes nothing");
        write((&second.0, &second.1));
        tokio::time::sleep(PERIOD * 2).await;
        assert_ne!(served().cert, before.cert);
        following.abort();
        std::fs::remove_dir_all(&directory).unwrap();
        let page = metrics.encode().unwrap();
        assert!(page.contains("certwatcher_read_certificate_total 4"), "{page}");
        assert!(page.contains("certwatcher_read_certificate_errors_total 2"), "{page}");
    }
}
