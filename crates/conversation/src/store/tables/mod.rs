//! The tables as rows: sessions, memories, notes and sets.
//!
//! A [`TableReading`] or [`Writing`] borrows the connection for one operation. Their callers begin and
//! end transactions.

mod archive;
mod items;
mod memory;
mod message;
mod notes;
mod picture;
mod push;
mod recording;
mod search;
mod session;
mod sets;
mod sql;
mod state;
mod sync;
mod usage;
mod vector;
mod words;

use std::ops::Deref;

use rusqlite::Connection;

pub(super) use self::items::{ITEM_COLUMNS, item_of, slot_of, with_columns};
pub(super) use self::sql::{Columns, Statements, columns, limit};
pub use self::words::{LONGEST_RUN, MOST_INDEXED, MOST_READ, MOST_WORDS};

/// Read access to the tables.
pub struct TableReading<'a> {
    pub(super) db: &'a Connection,
}

/// Read and write access to the tables. The writes belong to the running request.
pub struct Writing<'a>(pub(super) TableReading<'a>);

impl<'a> Deref for Writing<'a> {
    type Target = TableReading<'a>;

    fn deref(&self) -> &TableReading<'a> {
        &self.0
    }
}
