//! `contexture setup`: entries go into the configuration of agents and come out again, and nothing
//! else is changed or shown.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use crate::support::*;

const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// The configuration files of an agent, with a text that users may have in each.
fn files(agent: &str) -> &'static [(&'static str, &'static str)] {
    const HOOKS: &str =
        "{\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"command\": \"mine\"}]}]\n  }\n}\n";
    match agent {
        "claude" => &[
            ("home/.claude.json", "{\"b\": {\"key\": \"sk-1\"}, \"a\": 1, \"mcpServers\": {}}"),
            ("home/.claude/settings.json", HOOKS),
        ],
        "codex" => &[
            ("home/.codex/config.toml", "# k\nmodel = \"m\"\n[mcp_servers.o]\nkey = \"sk-1\"\n# e"),
            ("home/.codex/hooks.json", HOOKS),
        ],
        "gemini" => {
            &[("home/.gemini/settings.json", "{\n\t// why\n\t\"key\": \"sk-1\", // last\n}\n")]
        }
        _ => &[("config/opencode/opencode.jsonc", "{ /* k */ \"key\": \"sk-1\", \"mcp\": { } }")],
    }
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Writes a file below the home of a test, with the folders above it.
fn write(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn what_was_put_in_comes_out_to_the_byte() {
    for agent in AGENTS {
        let home = Home::new();
        for (name, text) in files(agent) {
            let path = write(&home, name, text);
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o640)).unwrap();
        }
        let shown = home.succeed(&["setup", agent]);
        assert!(shown.contains(env!("CARGO_BIN_EXE_contexture")), "{shown}");
        assert!(!shown.contains("sk-1") && !shown.contains("mine"), "{shown}");
        for (name, text) in files(agent) {
            assert!(shown.contains(&format!("+++ {}", home.path(name).display())), "{shown}");
            let written = read(home.path(name));
            assert!(written.contains("contexture"), "{written}");
            let first = text.lines().next().unwrap();
            assert!(written.starts_with(&first[..first.len() / 2]), "{written}");
            let mode = home.path(name).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o640);
        }
        let again = home.succeed(&["setup", agent]);
        assert!(
            again.lines().take(files(agent).len()).all(|line| line.ends_with("nothing to change"))
        );
        let shown = home.succeed(&["setup", agent, "--remove"]);
        assert!(shown.contains("\n-") && !shown.contains("sk-1"), "{shown}");
        for (name, text) in files(agent) {
            assert_eq!(read(home.path(name)), *text);
        }
        assert!(!home.succeed(&["setup", agent, "--remove"]).contains("---"));
    }
}

/// Ways in which users' editors write the same file.
fn written_in_ways(text: &str, is_json: bool) -> Vec<String> {
    let mut ways = vec![text.to_owned(), text.trim_end().to_owned(), format!("{text}\n\n")];
    let tabs = text.replace("  ", "\t");
    ways.push(tabs);
    if is_json {
        let end = text.rfind('}').unwrap();
        // Of two members with one name, the last counts.
        ways.push(format!("{},\n \"twice\": 1, \"twice\": {{}}\n}}\n", text[..end].trim_end()));
        ways.push(format!("// first\n{text}/* last */\n"));
        let twice = "\"hooks\": {}, \"mcpServers\": {\"a\": 1}, \"mcp\": {\"a\": 1}";
        ways.push(format!("{{{twice},{}", text.trim_start().trim_start_matches('{')));
    } else {
        ways.push(format!("# first\n{text}\n# last"));
        ways.push(text.replace("mcp_servers", "\"mcp_servers\""));
    }
    let windows: Vec<String> = ways.iter().map(|way| way.replace('\n', "\r\n")).collect();
    let marked = ways.iter().chain(&windows).map(|way| format!("\u{feff}{way}"));
    let marked: Vec<String> = marked.collect();
    ways.into_iter().chain(windows).chain(marked).collect()
}

#[test]
fn a_file_written_in_any_way_is_the_same_bytes_after_setup_twice_and_removal() {
    for agent in AGENTS {
        for (name, text) in files(agent) {
            for way in written_in_ways(text, !name.ends_with(".toml")) {
                let home = Home::new();
                let path = write(&home, name, &way);
                home.succeed(&["setup", agent]);
                let once = read(path.clone());
                assert!(once.contains("contexture"), "{once:?}");
                let is_windows = way.contains("\r\n") && !way.replace("\r\n", "").contains('\n');
                assert!(!is_windows || !once.replace("\r\n", "").contains('\n'), "{once:?}");
                home.succeed(&["setup", agent]);
                assert_eq!(read(path.clone()), once, "{agent} {way:?}");
                home.succeed(&["setup", agent, "--remove"]);
                assert_eq!(read(path), way, "{agent}");
            }
        }
    }
}

#[test]
fn an_agents_own_command_is_shown_and_used_and_what_it_did_is_compared() {
    const BEFORE: &str =
        "{\r\n  \"a\": 1,\r\n  \"mcpServers\": {\"o\": {\"command\": \"x\"}}\r\n}\r\n";
    // What the agent's command leaves, what is said, and whether the layout is the user's.
    let entry = format!(
        r#"{{"type": "stdio", "command": {:?}, "args": ["mcp"]}}"#,
        env!("CARGO_BIN_EXE_contexture")
    );
    let other = r#""o": {"command": "x"}"#;
    let servers = format!(r#""mcpServers": {{{other}, "contexture": {entry}}}"#);
    for (left, said, is_kept) in [
        (format!(r#"{{"a":1,{servers}}}"#), "written\n", true),
        (format!(r#"{{"a":1,{servers},"id":"new"}}"#), "set members of its own", false),
        (format!(r#"{{"a":1,"mcpServers":{{"contexture":{entry}}}}}"#), "did something else", true),
        (format!(r#"{{"a":1,"mcpServers":{{{other}}}}}"#), "did something else", true),
        (String::new(), "did not work: it failed", true),
    ] {
        let home = Home::new();
        let path = write(&home, "home/.claude.json", BEFORE);
        let script = match left.as_str() {
            "" => "exit 3".to_owned(),
            left => {
                format!("echo \"$@\" >> $HOME/asked; printf '%s' '{left}' > $HOME/.claude.json")
            }
        };
        let program = home.write("bin/claude", format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
        let bin = home.file("bin");
        let run = |args: &[&str]| {
            let mut command = home.command(args);
            command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let shown = run(&["setup", "claude", "--dry-run"]);
        assert!(shown.starts_with("$ claude mcp add-json --scope user contexture '{"), "{shown}");
        assert_eq!(read(path.clone()), BEFORE);
        assert!(!home.path("home/asked").exists());
        let shown = run(&["setup", "claude"]);
        assert!(shown.contains(said), "{said}: {shown}");
        let after = read(path.clone());
        let all = read_json(&after);
        assert_eq!(all["mcpServers"]["o"]["command"], "x", "{after}");
        assert_eq!(all["mcpServers"]["contexture"]["args"][0], "mcp", "{after}");
        assert_eq!(after.starts_with("{\r\n  \"a\": 1,\r\n"), is_kept, "{after:?}");
        if !left.is_empty() {
            let asked = read(home.path("home/asked"));
            assert!(asked.starts_with("mcp add-json --scope user contexture {"), "{asked}");
        }
        assert!(run(&["setup", "claude"]).contains("nothing to change"));
        std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
        let shown = run(&["setup", "claude", "--remove"]);
        assert!(shown.contains("$ claude mcp remove --scope user contexture"), "{shown}");
        let left = read(path);
        assert!(is_kept == (left == BEFORE) && !left.contains("contexture"), "{left:?}");
    }
}

#[test]
fn files_that_were_made_go_again() {
    for agent in AGENTS {
        let home = Home::new();
        let shown = home.succeed(&["setup", agent, "--dry-run"]);
        assert!(shown.contains("--- /dev/null"), "{shown}");
        let entries = |name: &str| std::fs::read_dir(home.path(name)).map_or(0, Iterator::count);
        assert_eq!((entries("home"), entries("config"), entries("state")), (0, 0, 0));
        home.succeed(&["setup", agent]);
        assert!(entries("home") + entries("config") > 0);
        home.succeed(&["setup", agent, "--remove"]);
        assert_eq!((entries("home"), entries("config")), (0, 0), "{agent}");
    }
}

#[test]
fn what_others_wrote_meanwhile_stays() {
    let home = Home::new();
    let path = write(&home, "home/.gemini/settings.json", "{\n  \"a\": 1\n}\n");
    home.succeed(&["setup", "gemini"]);
    // Others write the same with other white space, and something of their own.
    let mut all = read_json(&read(path.clone()));
    all["mcpServers"]["contexture"]["env"] = serde_json::json!({ "TOKEN": "sk-1" });
    all["mcpServers"]["other"] = serde_json::json!({ "command": "x" });
    std::fs::write(&path, all.to_string()).unwrap();
    assert!(home.succeed(&["setup", "gemini"]).contains("nothing to change"));
    let shown = home.succeed(&["setup", "gemini", "--remove"]);
    assert!(shown.contains("(not shown)") && !shown.contains("sk-1"), "{shown}");
    let left = read_json(&read(path));
    assert_eq!(left, serde_json::json!({ "a": 1, "mcpServers": { "other": { "command": "x" } } }));
}

#[test]
fn a_program_at_another_place_is_corrected_and_its_state_named() {
    let home = Home::new();
    home.succeed(&["setup", "claude"]);
    let state = home.path("elsewhere");
    let state = state.to_str().unwrap();
    let shown = home.succeed(&["--state", state, "setup", "claude"]);
    assert!(shown.contains("+++"), "{shown}");
    let servers = read_json(&read(home.path("home/.claude.json")));
    let entry = &servers["mcpServers"]["contexture"];
    assert_eq!(entry["args"], serde_json::json!(["--state", state, "mcp"]));
    let hooks = read_json(&read(home.path("home/.claude/settings.json")));
    let command = hooks["hooks"]["PreCompact"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(command.ends_with(&format!(" --state {state} hook claude PreCompact")), "{command}");
    assert_eq!(hooks["hooks"]["PreCompact"].as_array().unwrap().len(), 1);
    assert!(home.fail(&["setup", "claude", "--ephemeral"]).contains("--ephemeral"));
}

#[test]
fn a_project_has_files_of_its_own() {
    let home = Home::new();
    assert!(home.fail(&["setup", "claude", "--project"]).contains("not in a project"));
    std::fs::create_dir_all(home.file(".git")).unwrap();
    for (agent, names) in [
        ("claude", &[".mcp.json", ".claude/settings.json"][..]),
        ("codex", &[".codex/config.toml", ".codex/hooks.json"]),
        ("gemini", &[".gemini/settings.json"]),
        ("opencode", &["opencode.json"]),
    ] {
        home.succeed(&["setup", agent, "--project"]);
        for name in names {
            assert!(read(home.file(name)).contains("contexture"), "{name}");
        }
        home.succeed(&["setup", agent, "--project", "--remove"]);
    }
    let left = std::fs::read_dir(home.file("")).unwrap().count();
    assert_eq!((left, std::fs::read_dir(home.path("home")).unwrap().count()), (1, 0));
}

#[test]
fn the_folders_of_the_environment_are_used() {
    let home = Home::new();
    for (agent, variable, name) in [
        ("claude", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
    ] {
        let folder = home.path(agent);
        std::fs::create_dir(&folder).unwrap();
        let output = home.command(&["setup", agent]).env(variable, &folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(read(folder.join(name)).contains("contexture"));
    }
}

#[test]
fn files_that_cannot_be_edited_safely_are_refused() {
    let home = Home::new();
    let settings = home.path("home/.gemini/settings.json");
    let refused = |said: &str| {
        let text = home.fail(&["setup", "gemini"]);
        assert!(text.contains(said) && !text.contains("sk-1"), "{text}");
    };
    write(&home, "home/.gemini/settings.json", "{\"key\": \"sk-1\",, }");
    refused("line 1");
    write(&home, "home/.gemini/settings.json", "{\"mcpServers\": \"sk-1\"}");
    refused("this value has the wrong type");
    std::fs::write(&settings, b"{\"a\": \"\xff\"}").unwrap();
    refused("not UTF-8");
    std::fs::remove_file(&settings).unwrap();
    std::fs::create_dir(&settings).unwrap();
    refused("not a regular file");
    std::fs::remove_dir(&settings).unwrap();
    let outside = home.write("outside.json", "{}");
    symlink(&outside, &settings).unwrap();
    refused("outside the folder that the file must stay in");
    assert_eq!(read(outside.into()), "{}");
    std::fs::remove_file(&settings).unwrap();
    symlink(home.path("home/nowhere"), &settings).unwrap();
    refused("leads nowhere");
    std::fs::remove_file(&settings).unwrap();
    // A link within the home folder is one that the user made.
    let dotfiles = write(&home, "home/dotfiles/gemini.json", "{}");
    symlink(&dotfiles, &settings).unwrap();
    home.succeed(&["setup", "gemini"]);
    assert!(settings.is_symlink() && read(dotfiles).contains("contexture"));
}

#[test]
fn one_bad_file_leaves_all_as_they_are() {
    let home = Home::new();
    let settings = write(&home, "home/.claude/settings.json", "{");
    assert!(home.fail(&["setup", "claude"]).contains("nothing was changed"));
    assert_eq!(read(settings), "{");
    assert!(!home.path("home/.claude.json").exists());
}

#[test]
fn a_project_cannot_lead_out_of_its_folder() {
    let home = Home::new();
    std::fs::create_dir_all(home.file(".git")).unwrap();
    let outside = home.path("home/.claude");
    std::fs::create_dir_all(&outside).unwrap();
    symlink(&outside, home.file(".claude")).unwrap();
    assert!(
        home.fail(&["setup", "claude", "--project"])
            .contains("outside the folder that the file must stay in")
    );
    assert_eq!(std::fs::read_dir(outside).unwrap().count(), 0);
}

#[test]
fn the_doctor_runs_what_is_set_up() {
    let home = Home::new();
    let report = home.succeed(&["doctor"]);
    assert!(report.contains("ok  Codex is not installed"), "{report}");
    std::fs::create_dir(home.path("home/.codex")).unwrap();
    assert!(home.succeed(&["doctor"]).contains("run contexture setup codex"));
    for agent in AGENTS {
        home.succeed(&["setup", agent]);
    }
    let report = home.succeed(&["doctor"]);
    let works = |agent: &str, what: &str| {
        let line = format!("ok  {agent} is set up and works: its server offers 7 tools{what}");
        assert!(report.contains(&line), "{report}");
    };
    works("Claude Code", ", and 6 hooks answer");
    works("Codex", ", and 5 hooks answer; Codex runs the hooks once you trust them");
    works("Gemini CLI", ", and 6 hooks answer");
    works("OpenCode", "\n");
    assert!(!home.state().join("contexture.db").exists(), "it uses a state of its own");
    let config = home.path("home/.codex/config.toml");
    let hook = home.path("home/.codex/hooks.json:session_start:0:0");
    let trust = format!("[hooks.state.{hook:?}]\ntrusted_hash = \"sha256:x\"\n");
    std::fs::write(&config, read(config.clone()) + &trust).unwrap();
    assert!(!home.succeed(&["doctor"]).contains("once you trust"));
}

#[test]
fn a_link_to_the_program_stays_a_link() {
    let home = Home::new();
    std::fs::create_dir_all(home.file(".git")).unwrap();
    let link = home.path("contexture-link");
    symlink(env!("CARGO_BIN_EXE_contexture"), &link).unwrap();
    let by = |program: &str, args: &[&str]| {
        let mut command = home.command(args);
        command.arg0(program).env("PATH", link.parent().unwrap());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let named = format!("{:?}", link.to_str().unwrap());
    assert!(by(link.to_str().unwrap(), &["setup", "gemini", "--dry-run"]).contains(&named));
    assert!(by("contexture-link", &["setup", "gemini", "--dry-run"]).contains(&named));
    assert!(!by("/nowhere/contexture", &["setup", "gemini", "--dry-run"]).contains(&named));
    assert!(by(link.to_str().unwrap(), &["setup", "gemini", "--project"]).contains(&named));
    assert!(!home.succeed(&["doctor"]).contains("different command"));
}

#[test]
fn the_doctor_says_what_does_not_work() {
    let home = Home::new();
    for agent in AGENTS {
        home.succeed(&["setup", agent]);
    }
    let change = |name: &str, old: &str, new: &str| {
        let text = read(home.path(name));
        assert!(text.contains(old), "{text}");
        std::fs::write(home.path(name), text.replace(old, new)).unwrap();
    };
    let program = env!("CARGO_BIN_EXE_contexture");
    change("home/.claude/settings.json", "hook claude PreCompact", "hook claude Other");
    change("home/.codex/config.toml", program, "/nowhere/contexture");
    change("home/.gemini/settings.json", &format!("{program} hook"), "/nowhere/contexture hook");
    change("config/opencode/opencode.json", "\"mcp\"\n", "\"methods\"\n");
    let output = home.run(&["doctor"]);
    let report = String::from_utf8(output.stdout).unwrap();
    for line in [
        "BAD Claude Code: set up without the hook PreCompact; run contexture setup claude again",
        "BAD Codex: the set-up does not work: /nowhere/contexture is not there; run contexture",
        "ok  Gemini CLI is set up with a different command, which was not run",
        "ok  OpenCode is set up with a different command, which was not run",
    ] {
        assert!(report.contains(line), "{line}\n{report}");
    }
    assert!(!output.status.success());
}

#[test]
fn the_doctor_runs_no_program_but_its_own() {
    let home = Home::new();
    let ran = home.file("ran");
    let script = home.write("contexture", format!("#!/bin/sh\ntouch {ran:?}\n"));
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
    for agent in AGENTS {
        home.succeed(&["setup", agent]);
    }
    let program = env!("CARGO_BIN_EXE_contexture");
    let changed = |name: &str, change: &dyn Fn(String) -> String| {
        let path = home.path(name);
        std::fs::write(&path, change(read(path.clone()))).unwrap();
    };
    // Of two entries, the last counts. Variables can make our program run another.
    changed("home/.claude.json", &|text| {
        let end = text.rfind('}').unwrap();
        let entry = format!(r#"{{"command": {script:?}, "args": []}}"#);
        format!("{}, \"mcpServers\": {{\"contexture\": {entry}}}}}", text[..end].trim_end())
    });
    changed("home/.codex/config.toml", &|text| text + "env = { LD_PRELOAD = \"x.so\" }\n");
    changed("home/.gemini/settings.json", &|text| {
        text.replace(&format!("{program} hook"), &format!("{script} hook"))
    });
    changed("config/opencode/opencode.json", &|text| {
        text.replace("\"type\": \"local\",", "\"type\": \"local\", \"enabled\": false,")
    });
    let report = home.succeed(&["doctor"]);
    for agent in ["Claude Code", "Codex", "Gemini CLI"] {
        let line = format!("ok  {agent} is set up with a different command, which was not run");
        assert!(report.contains(&line), "{line}\n{report}");
    }
    assert!(report.contains("ok  OpenCode is set up, but told not to start"), "{report}");
    assert!(!ran.exists());
}

#[test]
fn the_doctor_runs_nothing_that_a_project_names() {
    let home = Home::new();
    std::fs::create_dir_all(home.file(".git")).unwrap();
    home.succeed(&["setup", "claude", "--project"]);
    let root = home.file("");
    let at = root.to_str().unwrap().trim_end_matches('/');
    let report = home.succeed(&["doctor"]);
    let line = format!("ok  Claude Code is set up in {at} and works: its server offers 7 tools");
    assert!(report.contains(&line), "{report}");
    let servers = home.file(".mcp.json");
    let entry = format!("{{\"command\": \"touch\", \"args\": [{:?}]}}", home.file("ran"));
    std::fs::write(&servers, format!("{{\"mcpServers\": {{\"contexture\": {entry}}}}}")).unwrap();
    let settings = home.file(".claude/settings.json");
    let hooks = read(settings.clone());
    let check = || {
        let report = home.succeed(&["doctor"]);
        assert!(report.contains("with a different command, which was not run"), "{report}");
        assert!(!home.file("ran").exists());
    };
    check();
    // The set-up leaves the entry of another program alone.
    assert!(home.fail(&["setup", "claude", "--project"]).contains("starts another program"));
    std::fs::remove_file(&servers).unwrap();
    home.succeed(&["setup", "claude", "--project"]);
    let script = home.write("contexture", format!("#!/bin/sh\ntouch {:?}\n", home.file("ran")));
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(settings, hooks.replace(env!("CARGO_BIN_EXE_contexture"), &script)).unwrap();
    check();
}
