//! A plan is carried out as a whole or not at all, and never over what a person wrote.

use std::{cell::Cell, collections::BTreeMap};

use super::*;

fn files(pairs: &[(&str, &str)]) -> Files {
    Files(pairs.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect())
}

fn project() -> Project {
    Project::new("it", "example.com").unwrap()
}

/// Everything in a folder.
fn snapshot(root: &Path) -> BTreeMap<String, String> {
    let folder = Folder(root);
    folder
        .list("")
        .unwrap()
        .into_iter()
        .map(|path| (path.clone(), folder.read(&path).unwrap().unwrap()))
        .collect()
}

/// A project with these files, as they were scaffolded.
fn scaffolded(old: &Files) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let step = Step { root: folder.path(), old: &Files::default(), new: old, force: false };
    step.plan(&project()).unwrap().carry_out(&|| false).unwrap();
    folder
}

fn write(folder: &tempfile::TempDir, path: &str, text: &str) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn step(folder: &tempfile::TempDir, old: &Files, new: &Files, force: bool) -> Result<Plan, Error> {
    Step { root: folder.path(), old, new, force }.plan(&project())
}

const OLD: [(&str, &str); 3] =
    [("a.txt", "one\ntwo\nthree\nfour\nfive\n"), ("b.txt", "b\n"), ("deep/er/c.txt", "c\n")];

#[test]
fn files_come_and_go_with_their_copies_and_folders() {
    let old = files(&OLD);
    let folder = scaffolded(&old);
    let all = snapshot(folder.path());
    assert_eq!(all.len(), 7, "{all:?}");
    assert_eq!(all["deep/er/c.txt"], all[".windlass/scaffold/deep/er/c.txt"]);
    step(&folder, &old, &files(&OLD[..2]), false).unwrap().carry_out(&|| false).unwrap();
    assert!(!folder.path().join("deep").exists() && !folder.path().join(".windlass/scaffold/deep").exists());
    assert!(!folder.path().join(".windlass/pending").exists());
}

#[test]
fn a_file_that_nobody_scaffolded_is_not_overwritten() {
    let folder = scaffolded(&files(&OLD[..1]));
    write(&folder, "b.txt", "mine\n");
    let before = snapshot(folder.path());
    let error = step(&folder, &files(&OLD[..1]), &files(&OLD), false).unwrap_err();
    assert_eq!(error.to_string(), "failed to write b.txt: it exists already");
    assert_eq!(snapshot(folder.path()), before);
    step(&folder, &files(&OLD[..1]), &files(&OLD), true).unwrap().carry_out(&|| false).unwrap();
    assert_eq!(snapshot(folder.path())["b.txt"], "b\n");
}

#[test]
fn what_a_person_changed_elsewhere_in_a_file_stays() {
    let old = files(&OLD);
    let folder = scaffolded(&old);
    write(&folder, "a.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    let mut new = old.clone();
    new.0.insert("a.txt".into(), "one\ntwo\nthree\nfour\nFIVE\n".into());
    step(&folder, &old, &new, false).unwrap().carry_out(&|| false).unwrap();
    let all = snapshot(folder.path());
    assert_eq!(all["a.txt"], "ONE\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!(all[".windlass/scaffold/a.txt"], "one\ntwo\nthree\nfour\nFIVE\n");
}

#[test]
fn two_changes_of_one_line_are_a_conflict_and_change_nothing() {
    let old = files(&OLD);
    let folder = scaffolded(&old);
    write(&folder, "a.txt", "mine\ntwo\nthree\nfour\nfive\n");
    let before = snapshot(folder.path());
    let mut new = old.clone();
    new.0.insert("a.txt".into(), "theirs\ntwo\nthree\nfour\nfive\n".into());
    assert!(
        matches!(step(&folder, &old, &new, false).unwrap_err(), Error::Conflict(paths) if paths == ["a.txt"])
    );
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn what_a_person_changed_is_kept_when_the_rest_goes() {
    let old = files(&OLD);
    let folder = scaffolded(&old);
    write(&folder, "b.txt", "mine\n");
    let plan = step(&folder, &old, &Files::default(), false).unwrap();
    assert_eq!(plan.kept, ["b.txt"]);
    plan.carry_out(&|| false).unwrap();
    assert_eq!(snapshot(folder.path()).into_keys().collect::<Vec<_>>(), ["PROJECT", "b.txt"]);
}

#[test]
fn line_ends_of_windows_are_no_change() {
    let old = files(&OLD);
    let folder = scaffolded(&old);
    write(&folder, "b.txt", "b\r\n");
    assert_eq!(step(&folder, &old, &Files::default(), false).unwrap().kept, [""; 0]);
}

#[test]
fn a_failure_on_the_way_puts_everything_back() {
    let old = files(&OLD[..2]);
    let folder = scaffolded(&old);
    // A file where a folder must be: the last of the changes fails.
    write(&folder, "zzz", "in the way\n");
    let before = snapshot(folder.path());
    let new = files(&[("a.txt", "new\n"), ("new/n.txt", "n\n"), ("zzz/z.txt", "z\n")]);
    let error = step(&folder, &old, &new, false).unwrap().carry_out(&|| false).unwrap_err();
    assert!(matches!(&error, Error::Write { path, .. } if path.ends_with("zzz/z.txt")), "{error:?}");
    assert!(error.to_string().ends_with("nothing was changed"), "{error}");
    assert_eq!(snapshot(folder.path()), before);
    assert!(!folder.path().join("new").exists());
}

#[test]
fn an_interruption_at_any_moment_leaves_the_project_as_it_was_or_complete() {
    let (old, new) = (files(&OLD[..2]), files(&OLD[1..]));
    let complete = {
        let folder = scaffolded(&old);
        step(&folder, &old, &new, false).unwrap().carry_out(&|| false).unwrap();
        snapshot(folder.path())
    };
    for moment in 0..100 {
        let folder = scaffolded(&old);
        let (before, asked) = (snapshot(folder.path()), Cell::new(0));
        let interrupted = || asked.replace(asked.get() + 1) >= moment;
        match step(&folder, &old, &new, false).unwrap().carry_out(&interrupted) {
            Err(Error::Interrupted) => assert_eq!(snapshot(folder.path()), before),
            other => {
                other.unwrap();
                assert!(moment > 0);
                return assert_eq!(snapshot(folder.path()), complete);
            }
        }
    }
    panic!("it was never let through");
}

#[test]
fn a_new_folder_goes_again_when_the_project_does_not_come() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("new");
    let new = files(&OLD);
    let plan =
        Step { root: &root, old: &Files::default(), new: &new, force: false }.plan(&project()).unwrap();
    assert!(matches!(plan.carry_out(&|| true).unwrap_err(), Error::Interrupted));
    assert!(!root.exists());
}

#[test]
fn a_crash_between_two_files_is_undone_by_the_next_command() {
    let (old, new) = (files(&OLD[..2]), files(&OLD[1..]));
    let folder = scaffolded(&old);
    let before = snapshot(folder.path());
    let count = step(&folder, &old, &new, false).unwrap().changes.len();
    for last in 0..=count {
        step(&folder, &old, &new, false).unwrap().carry_out_until(last);
        recover(folder.path()).unwrap();
        assert_eq!(snapshot(folder.path()), before, "after {last} of {count} files");
    }
}
