//! The key of a machine, and the sums and signatures of its changes.
//!
//! The secret key lies in a file of the state folder, and in no backup. A state that was copied or
//! restored gets another key, so that no two changes of one key have the same number.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use crate::whole_file;

/// File with the secret key.
const KEY_FILE: &str = "machine-key";
/// File with the number of the last change that others may know.
const SEQ_FILE: &str = "machine-seq";
/// Name of a machine that does not tell its own.
const NAMELESS: &str = "machine";
/// Number of bytes of a sum that machines compare.
pub const SUM: usize = 8;

/// A sum over changes.
pub type Sum = [u8; 32];

/// The secret key of a machine.
pub struct MachineKey {
    pair: Ed25519KeyPair,
    id: String,
}

/// The key of this machine, with what shows whether the state was copied or restored.
pub struct MachineIdentity {
    /// The key.
    pub key: MachineKey,
    /// Marks the file of the key; a copy of the file has another mark.
    pub place: String,
    /// Number of the last change that others may know.
    pub seq: u64,
    /// Name of the machine.
    pub name: String,
}

impl MachineKey {
    /// Creates the key of a seed.
    ///
    /// # Errors
    /// Fails if the seed is not 32 bytes long.
    pub fn of(seed: &[u8]) -> io::Result<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|_| io::Error::other(format!("{KEY_FILE} holds no key")))?;
        let id = hex(pair.public_key().as_ref());
        Ok(Self { pair, id })
    }

    /// Returns the id of the machine: its public key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Signs the change with this number, up to which the sum is `sum`.
    pub fn sign(&self, seq: u64, sum: &Sum) -> Vec<u8> {
        self.pair.sign(&signed(seq, sum)).as_ref().to_vec()
    }
}

impl MachineIdentity {
    /// Reads the identity from a state folder, and makes one if there is none or `anew` is true.
    ///
    /// # Errors
    /// Those of the files.
    pub fn open(folder: &Path, anew: bool) -> io::Result<Self> {
        let path = folder.join(KEY_FILE);
        if anew || !path.exists() {
            make_key(folder)?;
        }
        let read =
            || Ok::<_, io::Error>((fs::read_to_string(&path)?, place(&fs::metadata(&path)?)));
        let (mut text, mut place) = read()?;
        // A copy of the file, also of one that no exchange has used yet, is no key.
        if text.trim().split_once(' ').is_some_and(|(_, made)| made != place) {
            make_key(folder)?;
            (text, place) = read()?;
        }
        let seed = text.trim().split(' ').next().unwrap_or_default();
        let key = MachineKey::of(&unhex(seed).unwrap_or_default())?;
        let seq = fs::read_to_string(folder.join(SEQ_FILE)).unwrap_or_default();
        let seq = seq.trim().strip_prefix(key.id()).and_then(|seq| seq.trim().parse().ok());
        Ok(Self { key, place, seq: seq.unwrap_or(0), name: host_name() })
    }

    /// Records that others may know the change with this number.
    ///
    /// # Errors
    /// Those of the file.
    pub fn note(folder: &Path, id: &str, seq: u64) -> io::Result<()> {
        let path = folder.join(SEQ_FILE);
        let text = format!("{id} {seq}\n");
        match fs::read_to_string(&path) {
            Ok(old) if old == text => Ok(()),
            _ => whole_file::replace(&path, |file, _| file.write_all(text.as_bytes())),
        }
    }
}

/// Makes a key, in a file that says where it is.
fn make_key(folder: &Path) -> io::Result<()> {
    let mut seed = [0; 32];
    let random = SystemRandom::new().fill(&mut seed);
    random.map_err(|_| io::Error::other("the system gives no random numbers"))?;
    whole_file::replace(&folder.join(KEY_FILE), |file, _| {
        let place = place(&file.metadata()?);
        writeln!(file, "{} {place}", hex(&seed))
    })?;
    whole_file::sync_folder(folder)
}

/// Returns what marks a file, and is another for each copy of it.
fn place(about: &fs::Metadata) -> String {
    let born = about.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    format!("{} {}", about.ino(), born.unwrap_or_default().as_nanos())
}

/// Returns the name of this machine.
fn host_name() -> String {
    let said = Command::new("uname").arg("-n").output().ok();
    let name = said.and_then(|said| String::from_utf8(said.stdout).ok()).unwrap_or_default();
    let name = name.trim().split('.').next().unwrap_or_default();
    if name.is_empty() { NAMELESS.to_owned() } else { name.to_owned() }
}

/// Returns whether a machine signed the change with this number and sum.
pub fn is_signed(machine: &str, seq: u64, sum: &Sum, sign: &[u8]) -> bool {
    let key = unhex(machine).filter(|_| machine == machine.to_lowercase());
    key.is_some_and(|key| {
        UnparsedPublicKey::new(&ED25519, key).verify(&signed(seq, sum), sign).is_ok()
    })
}

fn signed(seq: u64, sum: &Sum) -> Vec<u8> {
    [b"contexture change\n", &seq.to_be_bytes()[..], sum].concat()
}

/// Returns the hash of the body of a change.
pub fn hash(body: &str) -> Sum {
    *blake3::hash(body.as_bytes()).as_bytes()
}

/// Returns the sum up to a change, from the sum before it and the hash of its body. `about` is the
/// text with which a later change replaces it. It is a part of the sum, so that nobody can say of
/// another change that it was replaced.
pub fn sum(before: &[u8], about: Option<&str>, hash: &Sum) -> Sum {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before).update(hash).update(about.unwrap_or_default().as_bytes());
    *hasher.finalize().as_bytes()
}

/// Writes bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads bytes in hexadecimal; `None` if they are not.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let digits = std::str::from_utf8(pair).ok().filter(|digits| digits.len() == 2)?;
            // A sign would be read, too.
            digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
            u8::from_str_radix(digits, 16).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_stays_until_its_file_is_copied_or_lost() {
        let temp = tempfile::tempdir().unwrap();
        let first = MachineIdentity::open(temp.path(), false).unwrap();
        MachineIdentity::note(temp.path(), first.key.id(), 7).unwrap();
        let again = MachineIdentity::open(temp.path(), false).unwrap();
        assert_eq!((again.key.id(), &again.place, again.seq), (first.key.id(), &first.place, 7));
        let copy = tempfile::tempdir().unwrap();
        for name in [KEY_FILE, SEQ_FILE] {
            fs::copy(temp.path().join(name), copy.path().join(name)).unwrap();
        }
        let copied = MachineIdentity::open(copy.path(), false).unwrap();
        assert_ne!(copied.key.id(), first.key.id(), "also if no exchange used it");
        assert_ne!(copied.place, first.place);
        let anew = MachineIdentity::open(copy.path(), true).unwrap();
        assert_ne!(anew.key.id(), first.key.id());
        assert_eq!(anew.seq, 0, "the number belongs to the key");
        assert_eq!(fs::metadata(temp.path().join(KEY_FILE)).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn only_the_machine_signs_its_changes() {
        let key = MachineKey::of(&[1; 32]).unwrap();
        let other = MachineKey::of(&[2; 32]).unwrap();
        let total = sum(&[0; 32], None, &hash("body"));
        assert_ne!(total, sum(&[0; 32], Some("marks 1"), &hash("body")));
        let sign = key.sign(1, &total);
        assert!(is_signed(key.id(), 1, &total, &sign));
        assert!(!is_signed(key.id(), 2, &total, &sign));
        assert!(!is_signed(key.id(), 1, &hash("body"), &sign));
        assert!(!is_signed(other.id(), 1, &total, &sign));
        assert!(!is_signed(&key.id().to_uppercase(), 1, &total, &sign), "one id has one spelling");
        for garbage in ["", "zz", "+1", "é", "123"] {
            assert!(!is_signed(garbage, 1, &total, &sign));
            assert_eq!(unhex(garbage).is_some(), garbage.is_empty(), "{garbage}");
        }
    }
}
