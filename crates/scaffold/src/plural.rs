//! The plural of a kind, as kubebuilder would have it: English, by the regular rules. `--plural` is for the rest.
/// The plural of a kind, in lower case.
pub fn plural(kind: &str) -> String {
    let singular = kind.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| singular.ends_with(ending));
    if singular.ends_with("endpoints") {
        return singular;
    }
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return singular + "es";
    }
    if let Some(stem) = singular.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    singular + "s"
}
