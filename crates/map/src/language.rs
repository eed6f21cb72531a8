//! Tells the language of a file by its name.

/// A language, as far as the map tells languages apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// A text in any other language: it counts by its words only.
    Other,
    /// Prose or data: words only, and less weight than code.
    Prose,
    /// A file that a tool wrote, such as a lock file: its name only.
    Data,
    /// Bash and other shells.
    Bash,
    /// C.
    C,
    /// C++.
    Cpp,
    /// Go.
    Go,
    /// Java.
    Java,
    /// Python.
    Python,
    /// Ruby.
    Ruby,
    /// Rust.
    Rust,
    /// TypeScript without JSX.
    TypeScript,
    /// TypeScript with JSX, and JavaScript, which is parsed as such.
    Tsx,
    /// Emacs Lisp.
    EmacsLisp,
    /// Common Lisp.
    CommonLisp,
    /// Scheme.
    Scheme,
    /// Clojure.
    Clojure,
    /// C#.
    CSharp,
    /// Elixir.
    Elixir,
    /// Haskell.
    Haskell,
    /// Kotlin.
    Kotlin,
    /// Lua.
    Lua,
    /// PHP.
    Php,
    /// Scala.
    Scala,
    /// Swift.
    Swift,
    /// Zig.
    Zig,
}

/// Each language with its number in a stored index.
const NUMBERS: &[Language] = &[
    Language::Other,
    Language::Prose,
    Language::Data,
    Language::Bash,
    Language::C,
    Language::Cpp,
    Language::Go,
    Language::Java,
    Language::Python,
    Language::Ruby,
    Language::Rust,
    Language::TypeScript,
    Language::Tsx,
    Language::EmacsLisp,
    Language::CommonLisp,
    Language::Scheme,
    Language::Clojure,
    Language::CSharp,
    Language::Elixir,
    Language::Haskell,
    Language::Kotlin,
    Language::Lua,
    Language::Php,
    Language::Scala,
    Language::Swift,
    Language::Zig,
];

impl Language {
    /// Returns the language of the file at `path`.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending {
            "rs" => Self::Rust,
            "c" | "h" => Self::C,
            "cc" | "cpp" | "cxx" | "hpp" | "hh" | "hxx" | "c++" | "h++" | "ipp" | "inl" | "cu" => {
                Self::Cpp
            }
            "py" | "pyi" | "pyw" => Self::Python,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" | "js" | "jsx" | "mjs" | "cjs" => Self::Tsx,
            "go" => Self::Go,
            "java" => Self::Java,
            "rb" | "rake" | "gemspec" | "ru" => Self::Ruby,
            "sh" | "bash" | "zsh" | "ksh" => Self::Bash,
            "el" => Self::EmacsLisp,
            "lisp" | "lsp" | "cl" | "asd" => Self::CommonLisp,
            "scm" | "ss" | "sld" | "sls" | "sps" | "rkt" | "guile" => Self::Scheme,
            "clj" | "cljs" | "cljc" | "cljd" | "bb" | "edn" => Self::Clojure,
            "cs" => Self::CSharp,
            "ex" | "exs" => Self::Elixir,
            "hs" => Self::Haskell,
            "kt" | "kts" => Self::Kotlin,
            "lua" => Self::Lua,
            "php" => Self::Php,
            "scala" | "sc" => Self::Scala,
            "swift" => Self::Swift,
            "zig" => Self::Zig,
            "lock" | "sum" | "map" | "snap" | "csv" | "tsv" | "svg" | "po" | "pot" | "jsonl" => {
                Self::Data
            }
            "md" | "markdown" | "org" | "rst" | "txt" | "adoc" | "texi" | "texinfo" | "tex"
            | "html" | "htm" | "xml" | "json" | "yaml" | "yml" | "toml" | "ini" | "cfg"
            | "conf" | "properties" => match name.as_str() {
                "package-lock.json" | "pnpm-lock.yaml" | "npm-shrinkwrap.json" => Self::Data,
                _ => Self::Prose,
            },
            _ => match name.as_str() {
                "rakefile" | "gemfile" | "guardfile" | "vagrantfile" => Self::Ruby,
                ".emacs" | "cask" | "eldev" | "eask" => Self::EmacsLisp,
                "readme" | "license" | "copying" | "news" | "changelog" | "authors" => Self::Prose,
                _ => Self::Other,
            },
        }
    }

    /// Returns true if definitions and references are read by the project's own reader of Lisp.
    pub(crate) fn is_lisp(self) -> bool {
        matches!(self, Self::EmacsLisp | Self::CommonLisp | Self::Scheme | Self::Clojure)
    }

    /// Returns true if the map has definitions and references of files in the language.
    #[must_use]
    pub fn has_definitions(self) -> bool {
        !matches!(self, Self::Other | Self::Prose | Self::Data)
    }

    pub(crate) fn number(self) -> u8 {
        NUMBERS.iter().position(|it| *it == self).unwrap_or(0) as u8
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        NUMBERS.get(usize::from(number)).copied()
    }
}
