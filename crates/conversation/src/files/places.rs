//! The places where agents keep their recorded sessions.

use std::path::{Path, PathBuf};

/// An agent, and the files and folders in which it may keep sessions.
pub struct AgentPlaces {
    /// Word for the agent on the command line.
    pub word: &'static str,
    /// Name of the agent.
    pub name: &'static str,
    pub places: Vec<PathBuf>,
}

/// Editors whose extensions keep tasks in the folder of the editor.
const EDITORS: &[&str] =
    &["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Antigravity"];

/// Returns where agents keep sessions, for a user and a project.
pub fn places(home: &Path, project: &Path) -> Vec<AgentPlaces> {
    let data = named_or("XDG_DATA_HOME", home.join(".local/share")).join("opencode");
    let gemini = named_or("GEMINI_CLI_HOME", home).join(".gemini");
    let qwen = home.join(".qwen");
    let pi = named_or("PI_CODING_AGENT_DIR", home.join(".pi/agent"));
    let tasks = |extension: &str| -> Vec<PathBuf> {
        let configs = [".config", "Library/Application Support"];
        let editors = configs.iter().flat_map(|config| {
            EDITORS.iter().map(move |editor| home.join(config).join(editor).join("User"))
        });
        let remote = [".vscode-server/data/User", ".cursor-server/data/User"];
        let all = editors.chain(remote.iter().map(|folder| home.join(folder)));
        all.map(|user| user.join("globalStorage").join(extension).join("tasks")).collect()
    };
    let mut cline = vec![home.join(".cline/data")];
    cline.extend(tasks("saoudrizwan.claude-dev"));
    let mut roo = tasks("rooveterinaryinc.roo-cline");
    roo.extend(tasks("kilocode.kilo-code"));
    let kept = |word, name, places| AgentPlaces { word, name, places };
    vec![
        kept("claude", "Claude Code", vec![claude_folder(home).join("projects")]),
        kept("codex", "Codex", vec![codex_folder(home).join("sessions")]),
        kept("gemini", "Gemini CLI", vec![gemini.join("tmp")]),
        kept("qwen", "Qwen Code", vec![qwen.join("projects"), qwen.join("tmp")]),
        kept("opencode", "OpenCode", vec![data.join("opencode.db"), data.join("storage")]),
        kept("cursor", "Cursor", vec![home.join(".cursor/projects")]),
        kept("copilot", "Copilot CLI", vec![home.join(".copilot/session-state")]),
        kept("cline", "Cline", cline),
        kept("roo", "Roo Code", roo),
        kept("pi", "pi", vec![pi.join("sessions")]),
        kept("openclaw", "OpenClaw", vec![home.join(".openclaw/agents")]),
        kept("aider", "aider", vec![project.join(super::recording::AIDER)]),
        kept("specstory", "SpecStory", vec![project.join(".specstory/history")]),
    ]
}

/// Returns the folder in which Claude Code keeps its settings and transcripts.
pub fn claude_folder(home: &Path) -> PathBuf {
    named_or("CLAUDE_CONFIG_DIR", home.join(".claude"))
}

/// Returns the folder in which Codex keeps its settings and sessions.
pub fn codex_folder(home: &Path) -> PathBuf {
    named_or("CODEX_HOME", home.join(".codex"))
}

/// Returns the folder that an environment variable names, or `usual` if the variable is not set or
/// empty.
pub fn named_or(variable: &str, usual: impl Into<PathBuf>) -> PathBuf {
    let named = std::env::var_os(variable).filter(|it| !it.is_empty());
    named.map_or_else(|| usual.into(), PathBuf::from)
}
