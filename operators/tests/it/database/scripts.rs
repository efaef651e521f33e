//! The scripts by themselves, with programs in place of PostgreSQL's that do the least that they must: what they make of a
//! volume, whatever they find there and wherever they are cut off.

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
        self.run("prepare.sh", more)
    }

    fn run(&self, name: &str, more: &[(&str, &str)]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/database/scripts").join(name);
        let script = fs::read_to_string(script).unwrap();
        // PostgreSQL may be installed here too.
        let (before, after) = script.split_once("\nPATH=").expect("the script must set its path");
        let script = format!("{before}\n{}", after.split_once('\n').unwrap().1);
        let path = format!("{}:{}", self.0.join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("PATH", path).env("PGMAJOR", "99");
        command.env("PGDATA", self.0.join("volume/pgdata")).env("TERMINATION_LOG", self.0.join("last-word"));
        command.env("BACKUP_ROOT", self.0.join("backups")).env("SCRATCH", &self.0);
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

impl Volume {
    fn back_up(&self, kind: &str, name: &str, method: &str) -> Output {
        let more = [("BACKUP_KIND", kind), ("BACKUP_NAME", name), ("BACKUP_METHOD", method)];
        self.run("backup.sh", &[&more[..], &[("BACKUP_KEEP", "2"), ("BACKUP_DEADLINE", "3600")]].concat())
    }

    fn backups(&self, kind: &str) -> Vec<String> {
        let all = fs::read_dir(self.0.join("backups").join(kind)).unwrap();
        let mut names: Vec<String> =
            all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A directory of a backup that was touched so many hours ago.
    fn old_backup(&self, name: &str, hours: u64) {
        let place = self.0.join("backups/scheduled").join(name);
        fs::create_dir_all(&place).unwrap();
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(hours * 3600);
        fs::File::open(&place).unwrap().set_modified(time).unwrap();
    }

    fn last_word(&self) -> String {
        fs::read_to_string(self.0.join("last-word")).unwrap_or_default()
    }
}

/// Programs that make a copy of files, and a dump.
fn with_backup_programs() -> Volume {
    let volume = Volume::new();
    volume.program(
        "pg_basebackup",
        "for word; do case $word in --pgdata=*) to=${word#*=} ;; esac; done\nmkdir -p \"$to\"; echo rows > \"$to/rows\"",
    );
    let to_file = "for word; do case $word in --file=*) to=${word#*=} ;; esac; done\necho dumped > \"$to\"";
    volume.program("pg_dump", to_file);
    volume.program("pg_dumpall", to_file);
    volume.program("pg_restore", "true");
    volume.program("psql", "echo app");
    volume
}

#[test]
fn a_backup_has_the_name_of_its_job_and_a_dump_its_roles() {
    let volume = with_backup_programs();
    succeeded(&volume.back_up("scheduled", "db-backup-1", "Physical"));
    assert_eq!(volume.backups("scheduled"), ["db-backup-1"]);
    assert!(volume.last_word().starts_with(r#"{"name":"db-backup-1","sizeKiB":"#), "{}", volume.last_word());
    succeeded(&volume.back_up("on-demand", "dump", "Logical"));
    let files = ["dump", "owner", "roles.sql"].map(|name| volume.0.join("backups/on-demand/dump").join(name));
    assert!(files.iter().all(|file| file.exists()), "{files:?}");
    // A Pod that comes after one whose end nobody saw finds it done.
    succeeded(&volume.back_up("scheduled", "db-backup-1", "Physical"));
}

#[test]
fn a_backup_that_fails_leaves_nothing_behind_and_touches_no_other() {
    for program in ["pg_basebackup", "pg_verifybackup"] {
        let volume = with_backup_programs();
        succeeded(&volume.back_up("scheduled", "db-backup-1", "Physical"));
        volume.program(program, "echo 'No space left on device' >&2; exit 1");
        let failed = volume.back_up("scheduled", "db-backup-2", "Physical");
        assert!(
            !failed.status.success() && String::from_utf8_lossy(&failed.stderr).contains("No space left")
        );
        assert_eq!(volume.backups("scheduled"), ["db-backup-1"], "{program}");
    }
}

#[test]
fn what_was_broken_off_and_what_earlier_operators_left_makes_room() {
    let volume = with_backup_programs();
    for (name, hours) in [("20250101T020000Z", 72), ("20250102T020000Z", 48), ("20250103T020000Z", 24)] {
        volume.old_backup(name, hours);
    }
    volume.old_backup("db-backup-0.partial", 3);
    volume.old_backup("db-backup-9.partial", 0);
    succeeded(&volume.back_up("scheduled", "db-backup-1", "Physical"));
    let running = "db-backup-9.partial";
    assert_eq!(volume.backups("scheduled"), ["20250103T020000Z", "db-backup-1", running], "two are kept");
    succeeded(&volume.back_up("scheduled", "db-backup-2", "Physical"));
    succeeded(&volume.back_up("scheduled", "db-backup-3", "Physical"));
    // Those for which a DatabaseBackup stands go with it, and with nothing else.
    assert_eq!(volume.backups("scheduled"), ["db-backup-1", "db-backup-2", "db-backup-3", running]);
}

#[test]
fn a_server_that_does_not_start_says_why_and_that_it_is_of_no_use_to_try_again() {
    const UNFIT: i32 = 78;
    let said = "LOG:  unrecognized configuration parameter \"work_memo\"";
    let volume = Volume::new();
    volume.program("postgres", "grep -q work_mem \"$SCRATCH/check/candidate.conf\"");
    let settings = [("SETTINGS", "work_mem = '8MB'")];
    succeeded(&volume.run("check.sh", &settings));
    assert_eq!(volume.last_word(), "");
    volume.program("postgres", &format!("echo 'LOG:  starting'; echo '{said}' >&2; exit 1"));
    assert_eq!(volume.run("check.sh", &settings).status.code(), Some(UNFIT));
    assert_eq!(volume.last_word(), said);
    // One that ends without a word that is known says all of it.
    volume.program("postgres", "true");
    volume.program(
        "pg_ctl",
        "for word; do case $word in --log=*) echo 'it is too much' > \"${word#*=}\"; exit 1 ;; esac; done",
    );
    assert_eq!(volume.run("check.sh", &settings).status.code(), Some(UNFIT));
    assert_eq!(volume.last_word(), "it is too much");
    volume.program("initdb", "exit 1");
    assert_eq!(volume.run("check.sh", &settings).status.code(), Some(1), "that is nobody's parameter");
}

#[test]
fn a_dump_with_roles_is_restored_with_them_and_one_without_has_its_extensions_first() {
    let volume = Volume::new();
    volume.program("pg_restore", "echo \"$*\" >> \"$SCRATCH/calls\"; case \"$*\" in *--list*) echo '2; 3079 16385 EXTENSION - hstore'; echo '3; 1259 1 TABLE public t app' ;; esac; echo dumped > \"$PGDATA.new/rows\"");
    succeeded(&volume.restore("Logical", MARK));
    let calls = fs::read_to_string(volume.0.join("calls")).unwrap();
    let calls: Vec<&str> = calls.lines().collect();
    let [list, extensions, rest] = calls[..] else { panic!("{calls:?}") };
    assert!(list.contains("--list") && extensions.contains("/extensions "), "{calls:?}");
    assert!(!extensions.contains("--role") && rest.contains("--no-owner --role=x"), "{calls:?}");

    let volume = Volume::new();
    volume.program("pg_restore", "echo \"$*\" >> \"$SCRATCH/calls\"; echo dumped > \"$PGDATA.new/rows\"");
    fs::write(volume.0.join("backup/roles.sql"), "CREATE ROLE reader;\n").unwrap();
    fs::write(volume.0.join("backup/owner"), "x\n").unwrap();
    succeeded(&volume.restore("Logical", MARK));
    let calls = fs::read_to_string(volume.0.join("calls")).unwrap();
    assert!(!calls.contains("--no-owner") && calls.lines().count() == 1, "{calls}");
}
