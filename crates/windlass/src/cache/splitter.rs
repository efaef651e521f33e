//! Takes a list apart while it arrives: every item is read as soon as it is there, and none waits for the others.
//!
//! Enters: the body of a list, in pieces of any size. Leave: the text of each item, and at the end what is around
//! them. So the memory that a list takes does not grow with it, which counts because an allocator rarely gives
//! back what a large list has scattered.

/// The state between two pieces.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last string on the level of the list's own fields: the name of the field that follows.
    name: Vec<u8>,
    /// Whether we are among the items.
    among_items: bool,
    /// The beginning of an item whose end has not arrived.
    item: Vec<u8>,
    /// Everything but the items.
    frame: Vec<u8>,
}

/// The depth of an item's text: inside the list's object and the array of items.
const ITEM: usize = 3;

impl Splitter {
    /// Takes the next piece, and hands over every item that ends in it.
    pub(super) fn feed<E>(
        &mut self,
        piece: &[u8],
        mut item: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // Where the part of the current item begins that lies in this piece.
        let mut start = self.inside_item().then_some(0);
        for (at, byte) in piece.iter().enumerate() {
            let was_inside = self.inside_item();
            self.step(*byte);
            match (was_inside, self.inside_item()) {
                (false, true) => start = Some(at),
                (true, false) => {
                    let part = &piece[start.take().unwrap_or_default()..=at];
                    if self.item.is_empty() {
                        item(part)?;
                    } else {
                        self.item.extend_from_slice(part);
                        item(&std::mem::take(&mut self.item))?;
                    }
                }
                (true, true) => {}
                // What separates items is no part of the frame.
                (false, false) if self.among_items && *byte != b'[' => {}
                (false, false) => self.frame.push(*byte),
            }
        }
        if let Some(start) = start {
            self.item.extend_from_slice(&piece[start..]);
        }
        Ok(())
    }

    /// The list without its items.
    pub(super) fn frame(&self) -> &[u8] {
        &self.frame
    }

    fn inside_item(&self) -> bool {
        self.among_items && self.depth >= ITEM
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ if self.depth == 1 => self.name.push(byte),
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 {
                    self.name.clear();
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.among_items |= byte == b'[' && self.depth == ITEM - 1 && self.name == b"items";
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.among_items &= self.depth >= ITEM - 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn split(text: &str, size: usize) -> (Vec<Value>, Value) {
        let (mut splitter, mut items) = (Splitter::default(), Vec::new());
        for piece in text.as_bytes().chunks(size.max(1)) {
            splitter
                .feed(piece, |item| {
                    items.push(serde_json::from_slice(item)?);
                    Ok::<_, serde_json::Error>(())
                })
                .unwrap();
        }
        (items, serde_json::from_slice(splitter.frame()).unwrap())
    }

    fn some_item() -> impl Strategy<Value = Value> {
        let text = prop::sample::select(vec!["a", "\"", "\\", "}]", "{[", "ü", "items", "\\\"", "\n"]);
        (text.clone(), text, prop::collection::vec(any::<u8>(), 0..3)).prop_map(|(key, value, list)| {
            json!({"metadata": {"name": value, key: [{"items": [list, {}]}]}, "items": [{"a": []}], "spec": {}})
        })
    }

    proptest! {
        #[test]
        fn items_and_frame_are_the_same_whatever_the_pieces(
            items in prop::collection::vec(some_item(), 0..5),
            size in 1..300_usize,
            pretty in any::<bool>(),
            last in any::<bool>(),
        ) {
            let meta = r#""metadata":{"resourceVersion":"7","items":[{"not":"one"}]}"#;
            let print = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
            let all = format!(r#""items":{}"#, print(&items).unwrap());
            let fields = if last { [meta, &all] } else { [&all, meta] };
            let text = format!(r#"{{"kind":"items", {}}}"#, fields.join(" , "));
            let (found, frame) = split(&text, size);
            prop_assert_eq!(found, items);
            prop_assert_eq!(
                frame,
                json!({"kind": "items", "items": [], "metadata": {"resourceVersion": "7", "items": [{"not": "one"}]}})
            );
        }
    }

    #[test]
    fn a_list_without_items_has_none() {
        assert_eq!(
            split(r#"{"items":null,"metadata":{}}"#, 3),
            (vec![], json!({"items": null, "metadata": {}}))
        );
        assert_eq!(split(r#"{"metadata":{}}"#, 100), (vec![], json!({"metadata": {}})));
    }
}
