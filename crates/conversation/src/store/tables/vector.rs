//! Vectors as blobs, and the rows for the vectors of messages.

use rusqlite::{Row, params};

use super::super::StoreError;
use super::super::session::Unembedded;
use super::message::{place, row_id};
use super::sql::{Statements, limit};
use super::{TableReading, Writing};

impl TableReading<'_> {
    /// Returns the vectors that an embedding model computed for the messages of a session from
    /// number `from` on, with the numbers of the messages.
    pub fn message_vectors(
        &self,
        session: u64,
        from: u64,
        model: &str,
    ) -> Result<Vec<(u64, Vec<f32>)>, StoreError> {
        let sql = "SELECT message, vector FROM message_vector
                   WHERE model = ?1 AND message BETWEEN ?2 AND ?3 ORDER BY message";
        let read = |row: &Row<'_>| {
            let vector = read_vector(row.get_ref(1)?.as_blob().unwrap_or_default());
            Ok((place(row.get(0)?).1, vector))
        };
        let mut vectors = Vec::new();
        for (session, from, to) in self.parts(session, from, self.message_count(session)?)? {
            let ids = (row_id(session, from), row_id(session, to));
            vectors.extend(self.db.rows(sql, params![model, ids.0, ids.1], read)?);
        }
        Ok(vectors)
    }

    /// Returns, in order, at most `most` of the messages numbered `from` to `to` of a session that
    /// are by the user or the assistant, are not blank, and have no vector by the embedding model
    /// `model`.
    pub fn messages_without_vector(
        &self,
        session: u64,
        (from, to): (u64, u64),
        model: &str,
        most: u64,
    ) -> Result<Vec<Unembedded>, StoreError> {
        let sql = "SELECT id, content FROM message
                   WHERE id BETWEEN ?2 AND ?3 AND sound AND role IN ('user', 'assistant')
                         AND trim(content, ' \t\r\n') <> ''
                         AND NOT EXISTS (SELECT 1 FROM message_vector
                                         WHERE model = ?1 AND message_vector.message = message.id)
                   ORDER BY id LIMIT ?4";
        let read = |row: &Row<'_>| {
            let (session, number) = place(row.get(0)?);
            Ok(Unembedded { session, number, content: row.get(1)? })
        };
        let mut found = Vec::new();
        for (session, from, to) in self.parts(session, from, to)? {
            let left = limit(most - found.len() as u64);
            let ids = (row_id(session, from), row_id(session, to));
            found.extend(self.db.rows(sql, params![model, ids.0, ids.1, left], read)?);
        }
        Ok(found)
    }
}

impl Writing<'_> {
    /// Stores the vector that an embedding model computed for a session's own message. The new
    /// vector replaces an earlier one by the same model.
    pub fn set_message_vector(
        &self,
        (session, number): (u64, u64),
        model: &str,
        vector: &[f32],
    ) -> Result<(), StoreError> {
        let sql =
            "INSERT OR REPLACE INTO message_vector (model, message, vector) VALUES (?1, ?2, ?3)";
        let values = params![model, row_id(session, number), write_vector(vector)];
        self.db.change(sql, values).map(drop)
    }
}

/// Reads a vector from its bytes.
pub(super) fn read_vector(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Returns the bytes of a vector.
pub(super) fn write_vector(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{commit, message, store};
    use super::*;
    use crate::session::message::Role;
    use crate::store::session::NewSession;

    #[test]
    fn a_fork_has_the_vectors_of_the_messages_that_it_shares() {
        let mut store = store();
        let named = |name: &str| NewSession { name: name.to_owned(), ..NewSession::default() };
        let first = store.change().unwrap().create_session(&named("a")).unwrap();
        let said = [(1, Role::User), (2, Role::Tool), (3, Role::Assistant), (4, Role::User)];
        let texts = ["one", "two", "three", " \n"];
        let said = said.iter().zip(texts).map(|((n, role), text)| message(*n, *role, text));
        store.change().unwrap().append_messages(first, &said.collect::<Vec<_>>()).unwrap();
        let new = NewSession { parent: Some((first, 3)), ..named("b") };
        let fork = store.change().unwrap().create_session(&new).unwrap();
        store.change().unwrap().append_messages(fork, &[message(4, Role::User, "four")]).unwrap();
        store.change().unwrap().set_message_vector((first, 3), "m", &[1.0, -0.5]).unwrap();
        store.change().unwrap().set_message_vector((fork, 4), "m", &[2.0]).unwrap();
        commit(&mut *store);
        let read = store.read();
        let lacking = |session, model, most| {
            let found = read.messages_without_vector(session, (1, 9), model, most).unwrap();
            let line = |it: Unembedded| format!("{} {} {}", it.session, it.number, it.content);
            found.into_iter().map(line).collect::<Vec<_>>()
        };
        let one = format!("{first} 1 one");
        assert_eq!(lacking(fork, "m", 9), [&*one]);
        assert_eq!(
            lacking(fork, "other", 9),
            [&*one, &format!("{first} 3 three"), &format!("{fork} 4 four")]
        );
        assert_eq!(lacking(first, "other", 1), [&*one]);
        let vectors = |session, from| read.message_vectors(session, from, "m").unwrap();
        assert_eq!(vectors(fork, 1), [(3, vec![1.0, -0.5]), (4, vec![2.0])]);
        assert_eq!(vectors(first, 1), [(3, vec![1.0, -0.5])]);
        assert_eq!(vectors(fork, 4), [(4, vec![2.0])]);
        assert!(read.message_vectors(fork, 1, "other").unwrap().is_empty());
    }
}
