//! `prepare.sh` by itself, with programs in place of PostgreSQL's that do the least that they must: what it makes of a
//! volume, whatever it finds there and wherever it is cut off.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering},
};

/// The code of a refusal, by which the Job knows.
const REFUSED: i32 = 73;
const MARK: &str = "uid-1 db-backups/on-demand/now Physical";

/// A volume, a backup and a place for programs, in a directory of their own.
struct Volume(PathBuf);

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Volume {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("windlass-prepare-{}-{number}", std::process::id()));
        for directory in ["bin", "volume", "backup/base"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        let volume = Self(root);
        volume.program("initdb", "for word; do case $word in --pgdata=*) new=${word#*=} ;; esac; done\nmkdir -p \"$new\"; echo 99 > \"$new/PG_VERSION\"; echo made > \"$new/rows\"");
        volume.program("pg_restore", "echo dumped > \"$PGDATA.new/rows\"");
        for name in ["pg_ctl", "psql", "pg_verifybackup"] {
            volume.program(name, "true");
        }
        fs::write(volume.0.join("backup/base/PG_VERSION"), "99\n").unwrap();
        fs::write(volume.0.join("backup/base/rows"), "backed up\n").unwrap();
        fs::write(volume.0.join("backup/dump"), "").unwrap();
        volume
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.0.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn data(&self, file: &str) -> PathBuf {
        self.0.join("volume/pgdata").join(file)
    }

    fn rows(&self) -> Option<String> {
        fs::read_to_string(self.data("rows")).ok().map(|rows| rows.trim().to_owned())
    }

    fn prepare(&self, more: &[(&str, &str)]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/database/scripts/prepare.sh");
        let script = fs::read_to_string(script).unwrap();
        // PostgreSQL may be installed here too.
        let (before, after) = script.split_once("\nPATH=").expect("the script must set its path");
        let script = format!("{before}\n{}", after.split_once('\n').unwrap().1);
        let path = format!("{}:{}", self.0.join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("PATH", path).env("PGMAJOR", "99");
        command.env("PGDATA", self.0.join("volume/pgdata")).env("TERMINATION_LOG", self.0.join("last-word"));
        for name in ["PGPASSWORD", "APP_DATABASE", "APP_OWNER", "APP_PASSWORD"] {
            command.env(name, "x");
        }
        command.envs(more.iter().copied()).output().unwrap()
    }

    fn restore(&self, method: &str, mark: &str) -> Output {
        let from = self.0.join("backup").display().to_string();
        self.prepare(&[("RESTORE_METHOD", method), ("RESTORE_FROM", &from), ("RESTORE_MARK", mark)])
    }
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn data_that_is_there_is_not_restored_over_and_not_touched() {
    for method in ["Physical", "Logical"] {
        let volume = Volume::new();
        succeeded(&volume.prepare(&[]));
        fs::write(volume.data("rows"), "written since\n").unwrap();
        assert_eq!(volume.restore(method, MARK).status.code(), Some(REFUSED), "{method}");
        assert_eq!(volume.rows().as_deref(), Some("written since"), "{method}");
        let word = fs::read_to_string(volume.0.join("last-word")).unwrap();
        assert!(word.contains("holds data of PostgreSQL 99"), "{word}");
        // Without a restore it is opened as ever.
        succeeded(&volume.prepare(&[]));
    }
}

#[test]
fn a_restore_that_was_done_is_not_done_again_and_not_refused() {
    for (method, rows) in [("Physical", "backed up"), ("Logical", "dumped")] {
        let volume = Volume::new();
        succeeded(&volume.restore(method, MARK));
        assert_eq!(volume.rows().as_deref(), Some(rows));
        fs::write(volume.data("rows"), "written since\n").unwrap();
        succeeded(&volume.restore(method, MARK));
        succeeded(&volume.prepare(&[]));
        assert_eq!(volume.rows().as_deref(), Some("written since"), "{method}");
        let another = volume.restore(method, "uid-2 db-backups/on-demand/now Physical");
        assert_eq!(
            another.status.code(),
            Some(REFUSED),
            "another Database of the name asks for the backup itself"
        );
        assert_eq!(volume.rows().as_deref(), Some("written since"), "{method}");
    }
}

#[test]
fn a_restore_that_was_cut_off_is_done_anew() {
    for (method, rows) in [("Physical", "backed up"), ("Logical", "dumped")] {
        // The server that applies the log or takes the dump dies, and once more when it is stopped.
        for dies_at in ["start", "stop"] {
            let volume = Volume::new();
            volume.program("pg_ctl", &format!("case \"$*\" in *\" {dies_at}\"*) exit 1 ;; esac"));
            assert_eq!(volume.restore(method, MARK).status.code(), Some(1), "{method} {dies_at}");
            assert_eq!(volume.rows(), None, "half a copy is not the data: {method} {dies_at}");
            volume.program("pg_ctl", "true");
            succeeded(&volume.restore(method, MARK));
            assert_eq!(volume.rows().as_deref(), Some(rows), "{method} {dies_at}");
        }
    }
}

#[test]
fn an_empty_volume_is_restored_into_and_somebodys_files_are_not() {
    let volume = Volume::new();
    fs::create_dir_all(volume.data("")).unwrap();
    succeeded(&volume.restore("Physical", MARK));
    assert_eq!(volume.rows().as_deref(), Some("backed up"));

    let volume = Volume::new();
    fs::create_dir_all(volume.data("")).unwrap();
    fs::write(volume.data("letters"), "dear").unwrap();
    assert_eq!(volume.restore("Physical", MARK).status.code(), Some(REFUSED));
    assert_eq!(volume.prepare(&[]).status.code(), Some(1), "nor is a new server made beside them");
    assert_eq!(fs::read_to_string(volume.data("letters")).unwrap(), "dear");
    assert_eq!(fs::read_dir(volume.data("")).unwrap().count(), 1);
}

#[test]
fn a_copy_does_not_bring_the_mark_of_its_past() {
    let volume = Volume::new();
    fs::write(volume.0.join("backup/base/windlass-restored"), "uid-0 older Physical\n").unwrap();
    succeeded(&volume.restore("Physical", MARK));
    assert_eq!(fs::read_to_string(volume.data("windlass-restored")).unwrap().trim(), MARK);
}
