//! One change as the files hold it.
//!
//! Lengths and numbers are little-endian; a text is its length and its bytes. Labels and selectable fields
//! are written beside the object, so that opening a store parses no JSON.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    super::{Change, Key, Object, TableName},
    encryption::{self, Encryption},
};

/// What becomes of objects on their way to the disk and back.
#[derive(Debug, Clone, Default)]
pub(in crate::store) enum Seal {
    /// They are written as they are; one that is encrypted cannot be read.
    #[default]
    Never,
    /// They are neither encrypted nor decrypted: they go from one file to another.
    Untouched,
    /// As the configuration says.
    With(Arc<Encryption>),
}

/// A change of one table.
#[derive(Debug, Clone)]
pub(in crate::store) struct Record {
    pub(in crate::store) table: TableName,
    pub(in crate::store) change: Change,
    pub(in crate::store) object: Arc<Object>,
}

impl Record {
    /// What the disk is given for the record.
    pub(super) fn sealed(&self, seal: &Seal) -> Self {
        let Seal::With(encryption) = seal else { return self.clone() };
        self.holding(encryption.seal(&self.table, &self.object.key, &self.object.bytes))
    }

    /// The record of what the disk has, and whether it would be written in the same way now.
    pub(super) fn opened(self, seal: &Seal) -> Result<(Self, bool), String> {
        let bytes = &self.object.bytes;
        let (bytes, fresh) = match seal {
            Seal::Untouched => return Ok((self, true)),
            Seal::Never if bytes.starts_with(encryption::SEALED) => return Err(encryption::unknown(bytes)),
            Seal::Never => return Ok((self, true)),
            Seal::With(encryption) => encryption.open(&self.table, &self.object.key, bytes)?,
        };
        if self.object.untyped > bytes.len() {
            return Err("it is not an object".into());
        }
        Ok((self.holding(bytes), fresh))
    }

    fn holding(&self, bytes: Bytes) -> Self {
        let Object { key, revision, labels, fields, untyped, .. } = &*self.object;
        let object = Object {
            key: key.clone(),
            revision: *revision,
            labels: Arc::clone(labels),
            fields: Arc::clone(fields),
            bytes,
            untyped: *untyped,
        };
        Self { table: self.table.clone(), change: self.change, object: Arc::new(object) }
    }

    /// Appends the record to `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let Object { key, revision, labels, fields, bytes, untyped } = &*self.object;
        out.extend_from_slice(&revision.to_le_bytes());
        out.push(match self.change {
            Change::Added => 1,
            Change::Modified => 2,
            Change::Deleted => 3,
        });
        for text in [&self.table.group, &self.table.plural, &key.namespace, &key.name] {
            put(out, text.as_bytes());
        }
        put_length(out, labels.len());
        for (name, value) in labels.iter() {
            put(out, name.as_bytes());
            put(out, value.as_bytes());
        }
        put_length(out, fields.len());
        for field in fields.iter() {
            put(out, field.as_bytes());
        }
        put_length(out, *untyped);
        put(out, bytes);
    }

    /// Reads what [`Record::encode`] wrote; `None` if it is anything else.
    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader(payload);
        let revision = reader.revision()?;
        let change = match reader.take(1)?[0] {
            1 => Change::Added,
            2 => Change::Modified,
            3 => Change::Deleted,
            _ => return None,
        };
        let table = TableName { group: reader.text()?.into(), plural: reader.text()?.into() };
        let key = Key { namespace: reader.text()?.into(), name: reader.text()?.into() };
        let labels = (0..reader.length()?)
            .map(|_| Some((Arc::from(reader.text()?), Arc::from(reader.text()?))))
            .collect::<Option<_>>()?;
        let fields = (0..reader.length()?).map(|_| reader.text().map(Box::from)).collect::<Option<_>>()?;
        let untyped = reader.length()?;
        let bytes = reader.bytes()?;
        if !reader.0.is_empty() || untyped > bytes.len() {
            return None;
        }
        let bytes = Bytes::copy_from_slice(bytes);
        Some(Self {
            table,
            change,
            object: Arc::new(Object { key, revision, labels, fields, bytes, untyped }),
        })
    }
}

/// The revision that a record begins with, without reading the rest.
pub(super) fn revision_of(payload: &[u8]) -> Option<u64> {
    Reader(payload).revision()
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("an object's part must be smaller than 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn revision(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn length(&mut self) -> Option<usize> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        usize::try_from(length).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}
