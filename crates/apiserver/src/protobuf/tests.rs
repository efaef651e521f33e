//! Objects that a real kube-apiserver answered both as protobuf and as JSON must read the same.

use std::path::Path;

use proptest::prelude::*;

use super::*;

fn fixtures() -> Vec<(String, Vec<u8>, Value)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/protobuf");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pb") {
            let json = std::fs::read(path.with_extension("json")).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            found.push((name, std::fs::read(&path).unwrap(), serde_json::from_slice(&json).unwrap()));
        }
    }
    found
}

#[test]
fn what_the_real_server_writes_reads_as_its_json() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 9, "the recorded objects must be there");
    for (name, protobuf, json) in fixtures {
        let decoded = decode(&protobuf).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(decoded, json, "{name}");
    }
}

#[test]
fn a_kind_without_protobuf_is_named() {
    let mut body = MAGIC.to_vec();
    body.extend(b"\x0a\x10\x0a\x06x.io/v\x12\x06Custom");
    let error = decode(&body).unwrap_err();
    assert_eq!(error.to_string(), "no kind \"Custom\" is registered for version \"x.io/v\"");
    assert_eq!(decode(b"{}").unwrap_err(), Error::Magic);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(cut in 0..4000_usize, place in 0..4000_usize, byte in any::<u8>()) {
        for (_, mut protobuf, _) in fixtures() {
            protobuf.truncate(cut.max(4));
            if let Some(spot) = protobuf.get_mut(place.max(4)) {
                *spot = byte;
            }
            let _ = decode(&protobuf);
        }
    }
}
