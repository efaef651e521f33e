//! The file of an audit log: it grows to a size, then another one is begun, and old ones go.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};

use super::AuditOptions;
use crate::platform;

const MEGABYTE: u64 = 1024 * 1024;

/// How the moment is written at which a file was put aside.
const MOMENT: &str = "%Y-%m-%dT%H-%M-%S%.3f";

#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    max_size: u64,
    max_backups: usize,
    max_age: u64,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    file: fs::File,
    length: u64,
}

impl File {
    pub(super) fn open(options: &AuditOptions) -> io::Result<Self> {
        let max_size = if options.max_size == 0 { 100 } else { options.max_size }.saturating_mul(MEGABYTE);
        let path = options.path.clone();
        let open = if path.as_os_str() == "-" { None } else { Some(open(&path)?) };
        let (max_backups, max_age) = (options.max_backups, options.max_age);
        Ok(Self { path, max_size, max_backups, max_age, open: Mutex::new(open) })
    }

    /// Appends a line.
    pub(super) fn write(&self, line: &str, now: Timestamp) -> io::Result<()> {
        let mut held = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = held.as_mut() else { return io::stdout().lock().write_all(line.as_bytes()) };
        if open.length > 0 && open.length + line.len() as u64 > self.max_size {
            *open = self.another(now)?;
        }
        open.file.write_all(line.as_bytes())?;
        open.length += line.len() as u64;
        Ok(())
    }

    /// Puts the file aside and begins another one.
    fn another(&self, now: Timestamp) -> io::Result<Open> {
        let (stem, ending) = self.name();
        let moment = now.strftime(MOMENT);
        fs::rename(&self.path, self.path.with_file_name(format!("{stem}-{moment}{ending}")))?;
        let open = open(&self.path)?;
        if let Err(error) = self.remove_old(now) {
            tracing::warn!(%error, "failed to remove old files of the audit log");
        }
        Ok(open)
    }

    fn name(&self) -> (String, String) {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let ending = text(self.path.extension());
        (text(self.path.file_stem()), if ending.is_empty() { ending } else { format!(".{ending}") })
    }

    fn remove_old(&self, now: Timestamp) -> io::Result<()> {
        let (stem, ending) = self.name();
        let folder =
            self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut aside = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let moment = name.strip_prefix(&format!("{stem}-")).and_then(|rest| rest.strip_suffix(&ending));
            let moment = moment.and_then(|text| jiff::civil::DateTime::strptime(MOMENT, text).ok());
            if let Some(moment) = moment.and_then(|moment| moment.to_zoned(jiff::tz::TimeZone::UTC).ok()) {
                aside.push((moment.timestamp(), path));
            }
        }
        aside.sort_unstable_by(|a, b| b.cmp(a));
        let days = i64::try_from(self.max_age).unwrap_or(i64::MAX / 48);
        let oldest =
            now.saturating_sub(SignedDuration::from_hours(days.saturating_mul(24))).unwrap_or(Timestamp::MIN);
        for (number, (moment, path)) in aside.iter().enumerate() {
            let many = self.max_backups > 0 && number >= self.max_backups;
            if many || (self.max_age > 0 && *moment < oldest) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<Open> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    let file = platform::private(&mut options).open(path)?;
    let length = file.metadata()?.len();
    Ok(Open { file, length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Policy;

    fn options(path: &Path, max_backups: usize, max_age: u64) -> AuditOptions {
        let policy =
            Policy::parse("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}").unwrap();
        AuditOptions { policy, path: path.into(), max_size: 1, max_backups, max_age }
    }

    fn names(folder: &Path) -> Vec<String> {
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_is_put_aside_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(folder.path().join("audit-mine.log"), "not one of ours").unwrap();
        let file = File::open(&options(&path, 2, 0)).unwrap();
        let line = "x".repeat(600 * 1024) + "\n";
        for hour in 0..5 {
            file.write(&line, Timestamp::from_second(hour * 3600).unwrap()).unwrap();
        }
        assert_eq!(
            names(folder.path()),
            [
                "audit-1970-01-01T03-00-00.000.log",
                "audit-1970-01-01T04-00-00.000.log",
                "audit-mine.log",
                "audit.log"
            ]
        );
        // It goes on where it was, and within a day nothing is too old.
        let file = File::open(&options(&path, 0, 1)).unwrap();
        file.write(&line, Timestamp::from_second(5 * 3600).unwrap()).unwrap();
        assert_eq!(names(folder.path()).len(), 5);
        file.write(&line, Timestamp::from_second((24 + 4) * 3600 + 1).unwrap()).unwrap();
        assert_eq!(
            names(folder.path()),
            [
                "audit-1970-01-01T05-00-00.000.log",
                "audit-1970-01-02T04-00-01.000.log",
                "audit-mine.log",
                "audit.log"
            ]
        );
        assert!(fs::read(&path).unwrap() == line.as_bytes());
    }
}
