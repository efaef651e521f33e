//! Names of Rust for names of Kubernetes: any text goes in, an identifier comes out.

/// Words that cannot name anything, not even with `r#` before them.
const NEVER: [&str; 5] = ["self", "Self", "super", "crate", "_"];

const KEYWORDS: [&str; 48] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The words of a name: `podCIDRs`, `pod-cidrs` and `pod_cidrs` have two.
fn words(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (index, &character) in characters.iter().enumerate() {
        if !character.is_ascii_alphanumeric() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        let before = index.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(index + 1).copied();
        let starts = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                // The plural of an abbreviation, as in `CIDRs`, stays one word.
                let plural = after == Some('s')
                    && characters.get(index + 2).is_none_or(|next| !next.is_ascii_lowercase());
                !before.is_ascii_uppercase()
                    || (after.is_some_and(|after| after.is_ascii_lowercase()) && !plural)
            });
        if starts && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.push(character.to_ascii_lowercase());
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// `startingDeadlineSeconds` as a field: `starting_deadline_seconds`, `type` as `r#type`, `$ref` as `r#ref`.
pub(crate) fn field(name: &str) -> String {
    let text = words(name).join("_");
    if text.is_empty() {
        return "field".to_owned();
    }
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return format!("n{text}");
    }
    if NEVER.contains(&text.as_str()) {
        return format!("{text}_");
    }
    if KEYWORDS.contains(&text.as_str()) {
        return format!("r#{text}");
    }
    text
}

/// `jobTemplate` as a type or a variant: `JobTemplate`.
pub(crate) fn pascal(name: &str) -> String {
    let text: String = words(name)
        .iter()
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect();
    match text.chars().next() {
        None => "Empty".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("N{text}"),
        Some(_) if text == "Self" => "SelfValue".to_owned(),
        Some(_) => text,
    }
}

/// What serde's `rename_all = "camelCase"` makes of a field.
pub(crate) fn camel(field: &str) -> String {
    let mut name = String::new();
    let mut upper = false;
    for character in field.trim_start_matches("r#").chars() {
        if character == '_' {
            upper = true;
        } else if std::mem::take(&mut upper) && !name.is_empty() {
            name.push(character.to_ascii_uppercase());
        } else {
            name.push(character);
        }
    }
    name
}

/// What one item of a list of this name is called: `containers` has a `container`.
pub(crate) fn singular(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let keep =
        ["ss", "us", "is"].iter().any(|end| lower.ends_with(end)) || !lower.ends_with('s') || name.len() < 4;
    if keep {
        return name.to_owned();
    }
    let cut = |by: usize, more: &str| format!("{}{more}", &name[..name.len() - by]);
    if lower.ends_with("ies") {
        return cut(3, "y");
    }
    if ["sses", "shes", "ches", "xes", "zes"].iter().any(|end| lower.ends_with(end)) {
        return cut(2, "");
    }
    cut(1, "")
}

/// Whether this can be the name of a struct as it is.
pub(crate) fn is_type(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|character| character.is_ascii_alphanumeric())
        && name != "Self"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_snake_case_and_never_keywords() {
        let cases = [
            ("startingDeadlineSeconds", "starting_deadline_seconds"),
            ("podCIDRs", "pod_cidrs"),
            ("clusterIP", "cluster_ip"),
            ("HTTPServer", "http_server"),
            ("type", "r#type"),
            ("self", "self_"),
            ("$ref", "r#ref"),
            ("x-kubernetes-thing", "x_kubernetes_thing"),
            ("1st", "n1st"),
            ("---", "field"),
            ("größe", "gr_e"),
        ];
        for (name, expected) in cases {
            assert_eq!(field(name), expected, "{name}");
        }
    }

    #[test]
    fn camel_is_what_serde_makes_of_a_field() {
        assert_eq!(camel("starting_deadline_seconds"), "startingDeadlineSeconds");
        assert_eq!(camel("r#type"), "type");
        assert_eq!(camel("cluster_ip"), "clusterIp");
        assert_eq!(camel("self_"), "self");
    }

    #[test]
    fn an_item_is_called_by_the_singular_of_its_list() {
        for (plural, expected) in [
            ("containers", "container"),
            ("policies", "policy"),
            ("addresses", "address"),
            ("status", "status"),
            ("args", "arg"),
            ("access", "access"),
        ] {
            assert_eq!(singular(plural), expected);
        }
    }
}
