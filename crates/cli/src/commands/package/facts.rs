//! What is told about an operator: by flags, by Cargo.toml, by what follows from the rest.
//!
//! What Cargo.toml has no field for stands in its table `[package.metadata.windlass]`: display-name, provider, icon,
//! min-kubernetes-version, categories, capabilities, maturity.

use std::path::Path;

use serde_json::Value;
use windlass_package::{Facts, Icon, Link, Maintainer};

use super::Error;
use crate::args::FactsArgs;

/// Takes over what the package's own file says.
pub(super) fn from_cargo(facts: &mut Facts, root: &Path, package: &Value) -> Result<(), Error> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned);
    let list =
        |value: &Value| -> Vec<String> { value.as_array().into_iter().flatten().filter_map(text).collect() };
    facts.description = text(&package["description"]).unwrap_or_default();
    facts.license = text(&package["license"]);
    facts.keywords = list(&package["keywords"]);
    for author in list(&package["authors"]) {
        facts.maintainers.push(maintainer(&author)?);
    }
    for (name, key) in
        [("Home", "homepage"), ("Documentation", "documentation"), ("Repository", "repository")]
    {
        if let Some(url) = text(&package[key]) {
            facts.links.push(Link { name: name.to_owned(), url });
        }
    }
    let own = &package["metadata"]["windlass"];
    facts.display_name = text(&own["display-name"]);
    facts.provider = text(&own["provider"]);
    facts.categories = list(&own["categories"]);
    facts.capabilities = text(&own["capabilities"]);
    facts.maturity = text(&own["maturity"]);
    if let Some(version) = text(&own["min-kubernetes-version"]) {
        facts.min_kube_version = windlass_package::Version::parse(&version)?.to_string();
    }
    if let Some(path) = text(&own["icon"]) {
        facts.icon = Some(icon(&root.join(path))?);
    }
    Ok(())
}

/// What flags say wins.
pub(super) fn from_flags(facts: &mut Facts, args: &FactsArgs) -> Result<(), Error> {
    if !args.maintainers.is_empty() {
        facts.maintainers = args.maintainers.iter().map(|text| maintainer(text)).collect::<Result<_, _>>()?;
    }
    if let Some(provider) = &args.provider {
        facts.provider = Some(provider.clone());
    }
    if let Some(path) = &args.icon {
        facts.icon = Some(icon(path)?);
    }
    Ok(())
}

/// `NAME <MAIL>`, as Cargo.toml has it, or a name alone.
fn maintainer(text: &str) -> Result<Maintainer, Error> {
    let wrong = || Error::Maintainer(text.to_owned());
    let (name, email) = match text.split_once('<') {
        Some((name, rest)) => (name.trim(), Some(rest.trim().strip_suffix('>').ok_or_else(wrong)?)),
        None => (text.trim(), None),
    };
    if name.is_empty() || email.is_some_and(|email| !email.contains('@')) {
        return Err(wrong());
    }
    Ok(Maintainer { name: name.to_owned(), email: email.map(ToOwned::to_owned) })
}

fn icon(path: &Path) -> Result<Icon, Error> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let media_type = match ending.as_str() {
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        _ => return Err(Error::IconType(path.to_owned())),
    };
    let data = std::fs::read(path).map_err(|source| Error::Icon { path: path.to_owned(), source })?;
    Ok(Icon { media_type: media_type.to_owned(), data })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cargo_says_what_people_would_say_twice_otherwise() {
        let mut facts = Facts::new("shop", "1.0.0", "shop:1").unwrap();
        let package = json!({
            "description": "Carts", "license": "MIT", "keywords": ["cart"], "authors": ["Ann <ann@example.com>", "Bob"],
            "repository": "https://example.com/shop", "homepage": null,
            "metadata": {"windlass": {"display-name": "Shop", "min-kubernetes-version": "1.31.0", "categories": ["Database"]}},
        });
        from_cargo(&mut facts, Path::new("."), &package).unwrap();
        assert_eq!((facts.description.as_str(), facts.title().as_str()), ("Carts", "Shop"));
        assert_eq!(facts.maintainers[0].email.as_deref(), Some("ann@example.com"));
        assert_eq!((facts.maintainers[1].name.as_str(), &facts.maintainers[1].email), ("Bob", &None));
        assert_eq!((facts.links.len(), facts.min_kube_version.as_str()), (1, "1.31.0"));
        let flags = FactsArgs { maintainers: vec!["Eve <eve@example.com>".into()], ..FactsArgs::default() };
        from_flags(&mut facts, &flags).unwrap();
        assert_eq!(facts.maintainers.len(), 1);
    }

    #[test]
    fn what_is_no_person_and_no_picture_is_refused() {
        for text in ["", "<a@b>", "Ann <ann>", "Ann <ann@b"] {
            assert!(maintainer(text).is_err(), "{text}");
        }
        assert!(matches!(icon(Path::new("x.txt")), Err(Error::IconType(_))));
    }
}
