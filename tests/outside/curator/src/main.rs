//! A program that keeps a history in a database of its own, with arguments of its own types.

use std::borrow::Cow;

use contexture_curate::{Call, Message, Part, Role, curate};
use serde::{Deserialize, Serialize};

/// Arguments that `serde_json` cannot read once any crate of the program turns on its feature
/// `arbitrary_precision`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Arguments {
    Wait { seconds: f64 },
}

struct Row {
    role: Role,
    text: String,
    call: Option<(String, String)>,
    answers: Option<String>,
}

impl Message for Row {
    fn role(&self) -> Role {
        self.role
    }

    fn text(&self) -> Cow<'_, str> {
        (&self.text).into()
    }

    fn calls(&self) -> Vec<Call<'_>> {
        let call = self.call.iter();
        call.map(|(id, arguments)| Call::new(id, "wait", arguments)).collect()
    }

    fn answers(&self) -> Vec<Cow<'_, str>> {
        self.answers.iter().map(Cow::from).collect()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    assert!(rustls::crypto::ring::default_provider().install_default().is_ok());
    let database = rusqlite::Connection::open_in_memory()?;
    database.execute_batch("CREATE TABLE said (role TEXT, text TEXT, id TEXT, arguments TEXT)")?;
    let mut add = database.prepare("INSERT INTO said VALUES (?1, ?2, ?3, ?4)")?;
    for turn in 0..50 {
        let id = format!("call-{turn}");
        let arguments = serde_json::to_string(&Arguments::Wait { seconds: 0.5 })?;
        add.execute(("user", format!("Wait for part {turn}."), None::<&str>, None::<&str>))?;
        add.execute(("assistant", "", Some(&id), Some(arguments)))?;
        add.execute(("tool", "It is done. ".repeat(20), Some(&id), None::<&str>))?;
    }
    let mut rows = database.prepare("SELECT role, text, id, arguments FROM said ORDER BY rowid")?;
    let rows = rows.query_map([], |row| {
        let role: String = row.get(0)?;
        let (id, arguments): (Option<String>, Option<String>) = (row.get(2)?, row.get(3)?);
        Ok(Row {
            role: Role::from_name(&role).unwrap_or(Role::User),
            text: row.get(1)?,
            answers: id.clone().filter(|_| arguments.is_none()),
            call: id.zip(arguments),
        })
    })?;
    let history = rows.collect::<Result<Vec<Row>, _>>()?;
    let window = curate(&history, 1_500).normalized().window()?;
    assert!(window.tokens <= 1_500 && window.parts.len() < history.len());
    let calls = window.parts.iter().filter_map(Part::index).filter_map(|at| {
        let (_, arguments) = history[at].call.as_ref()?;
        Some(serde_json::from_str::<Arguments>(arguments))
    });
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    assert!(!calls.is_empty());
    assert!(calls.iter().all(|call| *call == Arguments::Wait { seconds: 0.5 }));
    Ok(())
}
