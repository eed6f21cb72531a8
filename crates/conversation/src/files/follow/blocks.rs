//! Words that open and close blocks, in languages that have such words besides brackets.

/// The words of a language.
struct LanguageWords {
    /// Words that open a block at the end of a line.
    last: &'static [&'static str],
    /// Words that open a block at the beginning of a line, or of an assigned value.
    first: &'static [&'static str],
    /// Word that opens a block in a line that begins the body of a function. Empty if there is no
    /// such word.
    function: &'static str,
    /// Words that close a block at the beginning of a line.
    closing: &'static [&'static str],
    /// Beginning of a comment.
    comment: &'static str,
}

const ELIXIR: LanguageWords =
    LanguageWords { last: &["do"], first: &[], function: "fn", closing: &["end"], comment: "#" };
const LUA: LanguageWords = LanguageWords {
    last: &["do", "then", "repeat"],
    first: &[],
    function: "function",
    closing: &["end", "until"],
    comment: "--",
};
const RUBY: LanguageWords = LanguageWords {
    last: &["do"],
    first: &["def", "class", "module", "begin", "if", "unless", "case", "while", "until", "for"],
    function: "",
    closing: &["end"],
    comment: "#",
};
const SHELL: LanguageWords = LanguageWords {
    last: &["do", "then", "in"],
    first: &[],
    function: "",
    closing: &["done", "fi", "esac"],
    comment: "#",
};

/// Returns how many more blocks a line opens than it closes: 1, 0 or -1.
pub(super) fn opened(line: &str, language: &str) -> i64 {
    let words = match language {
        "bash" | "sh" => &SHELL,
        "elixir" => &ELIXIR,
        "lua" => &LUA,
        "ruby" => &RUBY,
        _ => return 0,
    };
    let line = line.trim();
    if line.starts_with(words.comment) {
        return 0;
    }
    i64::from(words.opens(line)) - i64::from(words.closing.contains(&first_word(line)))
}

impl LanguageWords {
    fn opens(&self, line: &str) -> bool {
        let first = first_word(line);
        // The parameters of a block follow its word.
        let head = line.strip_suffix('|').and_then(|line| line.rsplit_once('|'));
        let last = last_word(head.map_or(line, |(head, _)| head.trim_end()));
        let value = line.rsplit_once(" = ").map_or("", |(_, value)| first_word(value));
        let begins = [first, value].iter().any(|word| self.first.contains(word));
        let goes_on = line.ends_with(')') || line.ends_with("->");
        let mut between = line.split(|c: char| !c.is_alphanumeric());
        let has_function = goes_on && !self.function.is_empty();
        let is_part = matches!(first, "elseif" | "elif")
            || last == "end"
            || (last == "in" && first != "case");
        !is_part
            && (self.last.contains(&last)
                || begins
                || (has_function && between.any(|word| word == self.function)))
    }
}

fn first_word(line: &str) -> &str {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

fn last_word(line: &str) -> &str {
    line.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(language: &str, expected: i64, lines: &[&str]) {
        for line in lines {
            assert_eq!(super::opened(line, language), expected, "{language}: {line}");
        }
    }

    #[test]
    fn lines_open_and_close_blocks() {
        check("elixir", 1, &["  def one(x) do", "Enum.map(all, fn x ->", "case x do"]);
        check("elixir", 0, &["def one, do: 1", "# to do", "x -> y", "else", "undo"]);
        check("elixir", -1, &["  end", "end)", "end |> f()"]);
        check(
            "lua",
            1,
            &["local function f(a, b)", "if x then", "for i = 1, 2 do", "f(function()"],
        );
        check("lua", 0, &["elseif x then", "f(x)", "if x then return end", "-- then"]);
        check("lua", -1, &["end", "end)", "until x"]);
        check("ruby", 1, &["def x", "class A < B", "all.each do |x, y|", "y = case x", "if x"]);
        check("ruby", 0, &["return if x", "if x then y end", "else", "attr_reader :x"]);
        check("ruby", -1, &["end", "end.join"]);
        check("bash", 1, &["if x; then", "while read -r x; do", "case $x in"]);
        check("sh", 0, &["elif x; then", "echo do it", "for x in"]);
        check("sh", -1, &["fi", "done < x", "esac"]);
        check("rust", 0, &["end", "while x do", "fn x()"]);
    }
}
