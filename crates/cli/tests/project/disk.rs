//! A disk that is full and a folder that is read-only: a command says so and leaves everything as it was.
//!
//! Each case has a file system of its own, in a mount namespace that ends with the shell that made it.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::author::text;

/// The kinds of the project grow with this.
const CREATE: &str =
    "create api --group cache --version v1 --kind Memcached --image memcached:1.6 --make=false";

/// Runs a script in a folder on a small file system; `$WINDLASS` is the command.
fn on_a_small_disk(size: &str, script: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("set -eu\nmount -t tmpfs -o size={size} tmpfs .\ncd \"$PWD\"\n{script}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "--propagation", "private", "sh", "-c", &script]);
    command.current_dir(folder.path()).env("WINDLASS", Path::new(env!("CARGO_BIN_EXE_windlass")));
    let output = command.env_remove("RUST_LOG").output().expect("unshare must run (Debian: util-linux)");
    assert!(!text(&output.stderr).contains("unshare:"), "{}", text(&output.stderr));
    output
}

/// What a script printed, if it came to its end.
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_project_that_does_not_fit_is_not_begun() {
    // A page is 4 KiB, and a file takes at least one.
    let (mut refused, mut made) = (0, 0);
    for size in ["32k", "128k", "256k", "384k", "4m"] {
        let script = "if said=$($WINDLASS init shop --domain example.com 2>&1 > /dev/null); then echo made; \
             else printf '%s\\n' \"$said\"; ls -A; fi";
        let said = done(&on_a_small_disk(size, script));
        if said.trim() == "made" {
            made += 1;
            continue;
        }
        refused += 1;
        let lines: Vec<&str> = said.lines().collect();
        assert!(
            matches!(lines.as_slice(), [error, "hint: the disk is full; make room and try again"] if error.starts_with("error: ")),
            "{size}: {said}"
        );
    }
    assert!(refused > 0 && made > 0, "{refused} refused, {made} made");
}

#[test]
fn a_kind_that_does_not_fit_leaves_the_project_as_it_was() {
    // Less and less room is left beside the project, down to none.
    let script = format!(
        "$WINDLASS init shop --domain example.com > /dev/null\ncd shop\n\
         sum() {{ find . -type f ! -path ./full | LC_ALL=C sort | xargs sha256sum | sha256sum; }}\n\
         for pages in 0 1 2 5 10 20 30 40 60; do\n\
             dd if=/dev/zero of=full bs=4k count=100000 2> /dev/null || true\n\
             size=$(stat -c %s full)\n\
             truncate -s $((size - pages * 4096)) full\n\
             before=$(sum)\n\
             if said=$($WINDLASS {CREATE} 2>&1 > /dev/null); then echo \"$pages made\"; break; fi\n\
             case $said in *'the disk is full'*) ;; *) echo \"$pages: $said\"; exit 1 ;; esac\n\
             [ \"$before\" = \"$(sum)\" ] || {{ echo \"$pages: it is not as it was\"; exit 1; }}\n\
             echo \"$pages refused\"\n\
         done\n\
         rm full\n\
         $WINDLASS {CREATE} > /dev/null 2>&1 || true\n\
         $WINDLASS upgrade"
    );
    let said = done(&on_a_small_disk("2m", &script));
    assert!(said.contains("0 refused") && said.contains("10 refused"), "{said}");
    assert!(said.contains("up to date"), "{said}");
}

#[test]
fn a_read_only_folder_is_named_and_left_alone() {
    let script = format!(
        "$WINDLASS init shop --domain example.com > /dev/null\nmount -o remount,ro .\n\
         (cd shop && $WINDLASS {CREATE}) && exit 1\n$WINDLASS init other --domain example.com && exit 1\nls -A"
    );
    let output = on_a_small_disk("4m", &script);
    assert_eq!(done(&output).trim(), "shop");
    let said = text(&output.stderr);
    let hint = "hint: the folder cannot be written by you; choose another, or change its permissions";
    assert_eq!(said.lines().filter(|line| *line == hint).count(), 2, "{said}");
}
