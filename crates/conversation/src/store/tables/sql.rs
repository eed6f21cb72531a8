//! SQL statements that run in one call each, and structs as rows.

use std::borrow::Borrow;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::super::StoreError;
use crate::context::item::Kind;
use crate::session::message::{Phase, Role};

/// Prepared statements that run in one call each. The connection keeps them for the next call.
pub(in crate::store) trait Statements: Borrow<Connection> {
    /// Runs a statement and returns the number of rows that it changed.
    fn change(&self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        Ok(self.borrow().prepare_cached(sql)?.execute(values)?)
    }

    /// Inserts a row and returns its number.
    fn insert(&self, sql: &str, values: impl Params) -> Result<u64, StoreError> {
        self.change(sql, values)?;
        Ok(self.borrow().last_insert_rowid().unsigned_abs())
    }

    /// Returns the rows of a query.
    fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut query = self.borrow().prepare_cached(sql)?;
        let rows = query.query_map(values, read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the first row of a query, if the query has any rows.
    fn row<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.borrow().prepare_cached(sql)?.query_row(values, read).optional()?)
    }

    /// Returns the only column of the first row of a query, if the query has any rows.
    fn value<T: FromSql>(&self, sql: &str, values: impl Params) -> Result<Option<T>, StoreError> {
        self.row(sql, values, |row| row.get(0))
    }
}

impl Statements for Connection {}

/// A struct whose fields are columns of the same names.
pub(in crate::store) trait Columns: Sized {
    /// Names of the columns.
    const NAMES: &'static [&'static str];

    /// Returns the values of the columns.
    fn values(&self) -> Vec<&dyn ToSql>;

    /// Reads a row that begins with the columns.
    fn of(row: &Row<'_>) -> rusqlite::Result<Self>;

    /// Lists the columns for a statement.
    fn list() -> String {
        Self::NAMES.join(", ")
    }

    /// Returns a statement that inserts the values of the columns, followed by the values of `more`
    /// columns.
    fn insertion(table: &str, more: &[&str]) -> String {
        let names = [Self::NAMES, more].concat();
        let places = vec!["?"; names.len()].join(", ");
        format!("INSERT INTO {table} ({}) VALUES ({places})", names.join(", "))
    }
}

/// Lists the fields of a struct that are columns, and derives insertion, selection and reading from
/// the list. Other fields get their values from the struct after `..`.
macro_rules! columns {
    ($row:ident { $($field:ident),* $(,)? $(..$rest:expr)? }) => {
        impl $crate::store::tables::Columns for $row {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            fn values(&self) -> Vec<&dyn rusqlite::types::ToSql> {
                vec![$(&self.$field),*]
            }

            fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
                let mut columns = 0..;
                let mut next = || columns.next().unwrap_or_default();
                Ok(Self { $($field: row.get(next())?,)* $(..$rest)? })
            }
        }
    };
}
pub(in crate::store) use columns;

/// Converts a number of rows to an SQL `LIMIT`.
pub(in crate::store) fn limit(rows: u64) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Returns the error for a value that no version of this program stores.
pub(super) fn damaged(what: impl Into<String>) -> FromSqlError {
    FromSqlError::other(StoreError::Damaged(what.into()))
}

/// A type of another crate whose values are stored in columns, as a [`Column`].
pub(super) trait StoredInColumn: Sized {
    /// Returns the value as the column holds it.
    fn store(&self) -> rusqlite::Result<ToSqlOutput<'_>>;

    /// Reads the value of a column.
    fn restore(value: ValueRef<'_>) -> FromSqlResult<Self>;
}

/// A value of a type of another crate, as a column holds it.
pub(super) struct Column<T>(pub(super) T);

impl<T: StoredInColumn> ToSql for Column<&T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.store()
    }
}

impl<T: StoredInColumn> FromSql for Column<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        T::restore(value).map(Self)
    }
}

/// Lets the values of an enum be stored in columns, by their names.
macro_rules! names_as_columns {
    ($($name:ident: $what:literal;)*) => {$(
        impl StoredInColumn for $name {
            fn store(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.name().into())
            }

            fn restore(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let name = value.as_str().map_err(|error| damaged(format!("{}: {error}", $what)))?;
                Self::from_name(name).ok_or_else(|| damaged(format!("{} {name:?}", $what)))
            }
        }
    )*};
}

names_as_columns! {
    Role: "a message has the unknown role";
    Phase: "a message or window has the unknown phase";
    Kind: "an item has the unknown type";
}
