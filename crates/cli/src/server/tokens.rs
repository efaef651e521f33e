//! A file of tokens, as `--token-auth-file` has it: `token,user,uid,"group,group"`, a line for each.

use std::{collections::BTreeMap, path::Path};

use fs_err as fs;
use windlass_cluster::Identity;

use super::Error;

pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Identity>, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let mut tokens = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = || Error::Tokens { path: path.to_owned(), line: number + 1 };
        let fields = fields(line).ok_or_else(wrong)?;
        let [token, user, uid, groups @ ..] = fields.as_slice() else { return Err(wrong()) };
        if token.is_empty() || user.is_empty() {
            return Err(wrong());
        }
        let groups = groups.first().map(String::as_str).unwrap_or_default().split(',');
        let groups = groups.map(str::trim).filter(|group| !group.is_empty()).map(str::to_owned);
        let identity = Identity { uid: uid.clone(), ..Identity::new(user.clone(), groups) };
        tokens.insert(token.clone(), identity);
    }
    Ok(tokens)
}

/// The fields of a line: commas within quotes are part of one, and two quotes in a row are one.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    let mut letters = line.trim_end_matches('\r').chars().peekable();
    while let Some(letter) = letters.next() {
        let field = fields.last_mut()?;
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => field.push(letter),
        }
    }
    (!quoted).then(|| fields.iter().map(|field| field.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<BTreeMap<String, Identity>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.csv");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn a_token_is_of_a_user_with_groups() {
        let tokens = parsed("abc,ann,7,\"system:masters, shop\"\n\ndef,bob,8\r\n").unwrap();
        let ann = &tokens["abc"];
        assert_eq!((ann.name.as_str(), ann.uid.as_str()), ("ann", "7"));
        assert_eq!(ann.groups, ["system:masters", "shop", "system:authenticated"]);
        assert_eq!(tokens["def"].groups, ["system:authenticated"]);
    }

    #[test]
    fn a_line_that_cannot_be_is_named() {
        for text in ["a,b,c\nabc\n", "a,b,c\nabc,,1\n", "a,b,c\n\"abc,ann,1\n"] {
            let error = parsed(text).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
    }
}
