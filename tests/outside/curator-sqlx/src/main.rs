//! A program that keeps a history with sqlx, with arguments of its own types.

use std::borrow::Cow;

use contexture_curate::{Call, Message, Part, Role, curate};
use serde::{Deserialize, Serialize};
use sqlx::Row as _;
use sqlx::sqlite::{SqlitePoolOptions, SqliteRow};

/// Arguments that `serde_json` cannot read once any crate of the program turns on its feature
/// `arbitrary_precision`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Arguments {
    Wait { seconds: f64 },
}

struct Said {
    role: Role,
    text: String,
    call: Option<(String, String)>,
    answers: Option<String>,
}

impl Message for Said {
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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    assert!(rustls::crypto::ring::default_provider().install_default().is_ok());
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::query("CREATE TABLE said (role TEXT, text TEXT, id TEXT, arguments TEXT)")
        .execute(&pool)
        .await?;
    for turn in 0..50 {
        let id = format!("call-{turn}");
        let arguments = serde_json::to_string(&Arguments::Wait { seconds: 0.5 })?;
        let rows = [
            ("user", format!("Wait for part {turn}."), None, None),
            ("assistant", String::new(), Some(&id), Some(arguments)),
            ("tool", "It is done. ".repeat(20), Some(&id), None),
        ];
        for (role, text, id, arguments) in rows {
            let add = sqlx::query("INSERT INTO said VALUES (?1, ?2, ?3, ?4)");
            add.bind(role).bind(text).bind(id).bind(arguments).execute(&pool).await?;
        }
    }
    let said = |row: SqliteRow| {
        let role: String = row.get(0);
        let (id, arguments): (Option<String>, Option<String>) = (row.get(2), row.get(3));
        Said {
            role: Role::from_name(&role).unwrap_or(Role::User),
            text: row.get(1),
            answers: id.clone().filter(|_| arguments.is_none()),
            call: id.zip(arguments),
        }
    };
    let rows = sqlx::query("SELECT role, text, id, arguments FROM said ORDER BY rowid");
    let history: Vec<Said> = rows.map(said).fetch_all(&pool).await?;
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
