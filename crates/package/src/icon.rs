//! A picture for whoever has none: the first letter of the name on a colour that follows from the name.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

use crate::{Facts, Icon};

/// Calm colours on which white is readable.
const COLOURS: [&str; 8] =
    ["#1d4ed8", "#0f766e", "#7c3aed", "#b45309", "#be123c", "#15803d", "#4338ca", "#0369a1"];

impl Facts {
    /// The picture that was given, or a letter.
    pub(crate) fn picture(&self) -> Icon {
        self.icon.clone().unwrap_or_else(|| letter(&self.name))
    }
}

impl Icon {
    /// The bytes as text.
    pub(crate) fn base64(&self) -> String {
        STANDARD.encode(&self.data)
    }

    /// The picture as an address that holds all of it.
    pub(crate) fn url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.base64())
    }
}

fn letter(name: &str) -> Icon {
    let colour = COLOURS[usize::from(Sha256::digest(name)[0]) % COLOURS.len()];
    let first: String = name.chars().take(1).flat_map(char::to_uppercase).collect();
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 64\"><rect width=\"64\" height=\"64\" rx=\"12\" \
         fill=\"{colour}\"/><text x=\"32\" y=\"44\" font-family=\"sans-serif\" font-size=\"36\" font-weight=\"bold\" \
         text-anchor=\"middle\" fill=\"#ffffff\">{first}</text></svg>\n"
    );
    Icon { media_type: "image/svg+xml".to_owned(), data: svg.into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_has_one_picture() {
        assert_eq!(letter("shop"), letter("shop"));
        let svg = String::from_utf8(letter("shop").data).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains(">S</text>"), "{svg}");
    }
}
