//! Hashes that are the same in every run, since they are stored.

/// Returns the hash of a record's id.
pub(super) fn record_hash(id: &str) -> u64 {
    hash(&["record", id])
}

/// Returns a hash of texts that is the same in every run, since it is stored.
pub(super) fn hash(parts: &[&str]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    first_bytes(&hasher.finalize())
}

/// Returns the hash of the `number`-th of several equal messages, which all have the hash `own`.
pub(super) fn nth(own: u64, number: u64) -> u64 {
    let bytes = [own.to_le_bytes(), number.to_le_bytes()].concat();
    first_bytes(&blake3::hash(&bytes))
}

fn first_bytes(hash: &blake3::Hash) -> u64 {
    hash.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
