use super::*;

const TREE: &str = "0\tshop v0.1.0 (/work/shop)\tMIT\t
1\tserde v1.0.1\tMIT OR Apache-2.0\thttps://example.com/serde
2\tserde_core v1.0.1\tMIT/Apache-2.0\t
1\tanyhow v1.0.2+x\t\t
2\tserde_core v1.0.1\tMIT/Apache-2.0\t (*)
";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nsource = \"registry\"\nchecksum = \"aa\"\n\n\
                    [[package]]\nname = \"shop\"\nversion = \"0.1.0\"\n";

#[test]
fn a_tree_is_read_with_who_uses_whom() {
    let tree = Tree::parse(TREE, LOCK).unwrap();
    let names: Vec<_> = tree.packages.iter().map(|package| package.name.as_str()).collect();
    assert_eq!(names, ["shop", "anyhow", "serde", "serde_core"]);
    assert_eq!(tree.edges, [(0, 1), (0, 2), (1, 3), (2, 3)]);
    assert_eq!(tree.packages[2].checksum.as_deref(), Some("aa"));
    assert_eq!(tree.packages[3].license.as_deref(), Some("MIT OR Apache-2.0"));
    assert!(!tree.packages[0].registry && tree.packages[2].registry);
}

#[test]
fn a_line_that_is_not_understood_is_an_error() {
    assert!(Tree::parse("warning: something\n", LOCK).is_err());
    assert!(Tree::parse("0\tshop v1\t\t\n2\tdeep v1\t\t\n", LOCK).is_err());
}

#[test]
fn a_document_says_what_spdx_asks_for_and_the_same_every_time() {
    let document = || Document::new("shop", b"program", Tree::parse(TREE, LOCK).unwrap(), 0);
    let text = document().to_json();
    assert_eq!(text, document().to_json());
    let value: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((&value["spdxVersion"], &value["SPDXID"]), (&json!("SPDX-2.3"), &json!("SPDXRef-DOCUMENT")));
    assert_eq!(value["creationInfo"]["created"], "1970-01-01T00:00:00Z");
    let packages = value["packages"].as_array().unwrap();
    assert_eq!(packages[1]["externalRefs"][0]["referenceLocator"], "pkg:cargo/anyhow@1.0.2%2Bx");
    assert_eq!(packages[2]["checksums"][0]["checksumValue"], "aa");
    assert_eq!(
        packages[0]["checksums"][0]["checksumValue"],
        Digest::of(b"program").hex(),
        "that of the program"
    );
    assert_eq!(packages[1]["licenseDeclared"], "NOASSERTION");
    // Every relationship is between elements that there are, and every identifier has only letters that SPDX allows.
    let ids: Vec<&str> = packages.iter().map(|package| package["SPDXID"].as_str().unwrap()).collect();
    for id in &ids {
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-'), "{id}");
    }
    let relationships = value["relationships"].as_array().unwrap();
    assert_eq!(relationships.len(), 5);
    for relationship in relationships {
        assert!(ids.contains(&relationship["relatedSpdxElement"].as_str().unwrap()));
    }
    let other = Document::new("shop", b"another program", Tree::parse(TREE, LOCK).unwrap(), 0).to_json();
    let other: Value = serde_json::from_slice(&other).unwrap();
    assert_ne!(value["documentNamespace"], other["documentNamespace"]);
}
