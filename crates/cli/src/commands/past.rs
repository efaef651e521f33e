//! `windlass history` and `windlass diff`: what an object was, and what has changed in a cluster.

use windlass::{jiff::Timestamp, kube::Client};
use windlass_ui::{
    Kind,
    history::{self, Version, unified, writes},
    kinds,
};

use crate::{
    args::{ConnectionArgs, HistoryArgs, SinceArgs},
    connection,
    error::Error,
    printer::Printer,
};

async fn client(args: &ConnectionArgs) -> Result<(Client, String), Error> {
    let config = connection::config(args.kubeconfig.as_ref(), args.context.as_deref()).await?;
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config).map_err(|error| Error::Client(error.into()))?;
    Ok((client, namespace))
}

async fn served(client: &Client) -> Result<Vec<Kind>, Error> {
    kinds(client).await.map_err(|error| Error::Reach(error.into()))
}

/// `windlass history KIND/NAME`.
pub(super) async fn of(args: &HistoryArgs, printer: Printer) -> Result<(), Error> {
    let (client, namespace) = client(&args.connection).await?;
    let namespace = args.namespace.as_ref().unwrap_or(&namespace);
    let (word, name) = &args.object;
    let kinds = served(&client).await?;
    let Some(kind) = kinds.iter().find(|kind| kind.is_meant_by(word)) else {
        return Err(Error::NoKind(word.clone()));
    };
    let known = history::history(&client, kind, Some(namespace), name).await.map_err(Error::History)?;
    if known.versions.is_empty() {
        return Err(Error::NoVersions { kind: kind.kind.clone(), name: name.clone() });
    }
    if !known.complete {
        printer.aside("older versions are no longer kept by the cluster")?;
    }
    if let Some(field) = &args.field {
        return show_field(&known.versions, field, printer);
    }
    let mut before: Option<&Version> = None;
    for version in &known.versions {
        printer.line(line(version))?;
        if args.patch {
            let gone = version.happened == history::Happened::Deleted;
            let object = (!gone).then_some(&version.object);
            let hidden = kind.plural == "secrets" && kind.group.is_empty();
            if hidden {
                printer.aside("  what a Secret holds is not shown")?;
            } else {
                printer.diff(&unified(before.map(|version| &version.object), object))?;
            }
            before = (!gone).then_some(version);
        }
    }
    Ok(())
}

fn line(version: &Version) -> String {
    let time = version.time.map(|time| time.to_string()).unwrap_or_default();
    let by = if version.writers.is_empty() {
        String::new()
    } else {
        format!("  by {}", version.writers.join(", "))
    };
    printable(&format!("{:>8}  {time:20}  {:8}{by}", version.revision, version.happened.word()))
}

fn show_field(versions: &[Version], field: &str, printer: Printer) -> Result<(), Error> {
    let mut found = false;
    for (path, writes) in writes(versions) {
        let below =
            path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        if !below {
            continue;
        }
        found = true;
        printer.line(printable(&path))?;
        for write in writes {
            let value = write.value.map_or_else(|| "(taken out)".to_owned(), |value| value.to_string());
            let line = format!("{:>8}  {value}  by {}", write.revision, write.writers.join(", "));
            printer.line(printable(&line))?;
        }
    }
    if found { Ok(()) } else { Err(Error::NoField(field.to_owned())) }
}

/// `windlass diff --since 5m`.
pub(super) async fn since(args: &SinceArgs, printer: Printer) -> Result<(), Error> {
    let (client, _) = client(&args.connection).await?;
    let mut kinds = served(&client).await?;
    for word in &args.kind {
        if !kinds.iter().any(|kind| kind.is_meant_by(word)) {
            return Err(Error::NoKind(word.clone()));
        }
    }
    match args.kind.as_slice() {
        // They are written all the time, and nobody asks for that.
        [] => kinds.retain(|kind| kind.kind != "Lease"),
        words => kinds.retain(|kind| words.iter().any(|word| kind.is_meant_by(word))),
    }
    let moment = Timestamp::now().checked_sub(args.since).unwrap_or(Timestamp::MIN);
    let found = history::since(&client, &kinds, moment).await.map_err(Error::History)?;
    let wanted = |namespace: &String| args.namespace.as_ref().is_none_or(|wanted| wanted == namespace);
    let mut count = 0;
    for changed in found.changed.iter().filter(|changed| wanted(&changed.namespace)) {
        let hidden = changed.kind.plural == "secrets" && changed.kind.group.is_empty();
        let difference = unified(changed.before.as_ref(), changed.after.as_ref());
        // Written, and in the end the same as before.
        if difference.is_empty() {
            continue;
        }
        count += 1;
        let what = match (&changed.before, &changed.after) {
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "changed",
        };
        let place =
            if changed.namespace.is_empty() { String::new() } else { format!(" in {}", changed.namespace) };
        let by = if changed.writers.is_empty() {
            String::new()
        } else {
            format!(" by {}", changed.writers.join(", "))
        };
        let head = format!("{}/{}{place} {what}{by}", changed.kind.plural, changed.name);
        printer.fact("object", printable(&head))?;
        if !args.name_only && !hidden {
            printer.diff(&difference)?;
        }
    }
    if !found.partial.is_empty() {
        let names: Vec<&str> = found.partial.iter().map(|kind| kind.plural.as_str()).collect();
        printer
            .warning(&format!("the cluster's history does not go back so far for {}", names.join(", ")))?;
    }
    if count == 0 {
        printer.aside("nothing has changed")?;
    }
    Ok(())
}

/// What a cluster says, without what a terminal would act upon.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing_to_act_upon() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}
