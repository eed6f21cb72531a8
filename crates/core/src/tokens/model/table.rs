//! The built-in table of models.

use crate::tokens::TokenizerName;

/// Limit of an unknown model, in tokens.
pub(crate) const DEFAULT_LIMIT: u64 = 100_000;

/// Limit, tokenizer and factor for an unknown model.
pub(crate) const DEFAULT: Row =
    Row { exact: false, ..public(&[], DEFAULT_LIMIT, TokenizerName::O200k) };

/// Day on which the table was last compared with what vendors publish.
pub const TABLE_DATE: &str = "2026-11-27";

/// Models by the beginnings of their names. Limits are those that vendors publish, with these
/// exceptions: `gpt-5` has the 128,000 that pruning was designed for, Claude's models have the
/// 200,000 that all accounts have, and a Gemini model of an unknown version has [`DEFAULT_LIMIT`].
/// Factors are relative to `o200k`; a calibration corrects them.
pub(crate) const TABLE: &[Row] = &[
    private(&["gemini-2.5-", "gemini-3"], 1_000_000, GEMINI).can(ALL),
    private(&["gemini-1.5-", "gemini-2.0-"], 1_000_000, GEMINI).can(NO_EFFORT),
    private(&["gemini"], DEFAULT_LIMIT, GEMINI),
    // Claude's tokenizer changed after 4.6. A name without a version counts as a new one, since the
    // new tokenizer gives the larger counts.
    private(&["claude"], 200_000, CLAUDE).can(ALL),
    private(&["claude-1", "claude-2", "claude-instant"], 100_000, CLAUDE_TO_4_6).can(NOTHING),
    private(&["claude-2.1"], 200_000, CLAUDE_TO_4_6).can(NOTHING),
    private(&["claude-3"], 200_000, CLAUDE_TO_4_6).can(NO_EFFORT),
    private(&["claude-3-7", "claude-3.7", "claude-4"], 200_000, CLAUDE_TO_4_6).can(ALL),
    private(&["claude-opus-4", "claude-sonnet-4", "claude-haiku-4"], 200_000, CLAUDE_TO_4_6)
        .can(ALL),
    private(&["claude-4-7", "claude-4-8", "claude-4-9"], 200_000, CLAUDE).can(ALL),
    private(&["claude-4.7", "claude-4.8", "claude-4.9"], 200_000, CLAUDE).can(ALL),
    private(&["claude-opus-4-7", "claude-opus-4-8", "claude-opus-4-9"], 200_000, CLAUDE).can(ALL),
    private(&["claude-opus-4.7", "claude-opus-4.8", "claude-opus-4.9"], 200_000, CLAUDE).can(ALL),
    private(&["claude-sonnet-4-7", "claude-sonnet-4-8", "claude-sonnet-4-9"], 200_000, CLAUDE)
        .can(ALL),
    private(&["claude-sonnet-4.7", "claude-sonnet-4.8", "claude-sonnet-4.9"], 200_000, CLAUDE)
        .can(ALL),
    private(&["claude-haiku-4-7", "claude-haiku-4-8", "claude-haiku-4-9"], 200_000, CLAUDE)
        .can(ALL),
    private(&["claude-haiku-4.7", "claude-haiku-4.8", "claude-haiku-4.9"], 200_000, CLAUDE)
        .can(ALL),
    public(&["gpt-5"], 128_000, O200K).can(ALL),
    public(&["gpt-5.4-mini", "gpt-5.4-nano"], 272_000, O200K).can(ALL),
    public(&["gpt-5.4", "gpt-5.5"], 1_050_000, O200K).can(ALL),
    public(&["gpt-5.6"], 922_000, O200K).can(ALL),
    public(&["gpt-5-chat", "gpt-4o", "chatgpt-4o"], 128_000, O200K).can(NO_EFFORT),
    public(&["gpt-oss"], 128_000, O200K).can(NO_PICTURES),
    public(&["o1-mini", "o1-preview"], 128_000, O200K).can(NOTHING),
    public(&["gpt-4.1"], 1_000_000, O200K).can(NO_EFFORT),
    public(&["o1", "o3", "o4-mini"], 200_000, O200K).can(ALL),
    public(&["o3-mini"], 200_000, O200K).can(NO_PICTURES),
    public(&["gpt-4-turbo"], 128_000, CL100K).can(NO_EFFORT),
    public(&["gpt-4-1106", "gpt-4-0125"], 128_000, CL100K).can(TOOLS),
    public(&["gpt-4-32k"], 32_768, CL100K).can(TOOLS),
    public(&["gpt-4"], 8_192, CL100K).can(TOOLS),
    public(&["gpt-3.5-turbo"], 16_385, CL100K).can(TOOLS),
    // Open models, with the limits that they were made for. A server often runs them with less, and
    // most servers tell.
    private(&["llama-3.1", "llama-3.3", "meta-llama-3.1"], 131_072, OPEN).can(TOOLS),
    private(&["llama3.1", "llama3.3"], 131_072, OPEN).can(TOOLS),
    private(&["llama3.2", "llama-3.2"], 131_072, OPEN).can(TOOLS),
    private(&["llama3", "llama-3", "meta-llama-3"], 8_192, OPEN).can(NOTHING),
    private(&["llama2", "llama-2"], 4_096, OPEN).can(NOTHING),
    private(&["qwen2.5"], 32_768, OPEN).can(TOOLS),
    private(&["qwen3"], 32_768, OPEN).can(NO_PICTURES),
    private(&["qwen2.5vl", "qwen2.5-vl"], 128_000, OPEN).can(PICTURES),
    private(&["qwen3-vl"], 262_144, OPEN).can(NO_EFFORT),
    private(&["llama3.2-vision", "llama-3.2-11b-vision", "llama-3.2-90b-vision"], 131_072, OPEN)
        .can(PICTURES),
    private(&["phi-4-multimodal"], 131_072, OPEN).can(PICTURES),
    private(&["glm-4.5v", "glm-4.6v"], 65_536, OPEN).can(ALL),
    private(&["qwen3-coder", "qwen3-next"], 262_144, OPEN).can(TOOLS),
    private(&["mistral-7b", "mixtral", "codestral-22b"], 32_768, OPEN),
    private(&["mistral-nemo", "mistral-large"], 131_072, OPEN).can(TOOLS),
    private(&["mistral-large-2512", "mistral-large-3"], 262_144, OPEN).can(NO_EFFORT),
    private(&["mistral-large-latest"], 262_144, OPEN).can(NO_EFFORT),
    private(&["magistral-medium-latest", "magistral-small-latest"], 262_144, OPEN).can(ALL),
    private(&["mistral-small3.1", "mistral-small3.2", "pixtral"], 131_072, OPEN).can(NO_EFFORT),
    private(&["mistral-small-3.1", "mistral-small-3.2"], 131_072, OPEN).can(NO_EFFORT),
    private(&["devstral"], 131_072, OPEN).can(TOOLS),
    private(&["gemma2", "gemma-2", "gemma-7b", "gemma:"], 8_192, OPEN).can(NOTHING),
    private(&["gemma3:1b", "gemma-3-1b", "gemma3n", "gemma-3n"], 32_768, OPEN).can(NOTHING),
    private(&["gemma3", "gemma-3"], 131_072, OPEN).can(PICTURES),
    private(&["phi4", "phi-4"], 16_384, OPEN).can(NOTHING),
    private(&["phi4-mini", "phi-4-mini"], 131_072, OPEN).can(TOOLS),
    private(&["deepseek-chat", "deepseek-reasoner"], 128_000, OPEN).can(TOOLS),
    private(&["deepseek-v4"], 1_000_000, OPEN),
    private(&["kimi-k2"], 262_144, OPEN).can(TOOLS),
    private(&["kimi-k2.5", "kimi-k2.6"], 262_144, OPEN).can(ALL),
    private(&["glm-4.5"], 128_000, OPEN).can(TOOLS),
    private(&["glm-4.6", "glm-4.7", "glm-5"], 200_000, OPEN).can(NO_PICTURES),
    private(&["command-r"], 128_000, OPEN).can(TOOLS),
    private(&["grok-3"], 131_072, OPEN).can(TOOLS),
    private(&["grok-4"], 256_000, OPEN).can(ALL),
];

const O200K: TokenizerName = TokenizerName::O200k;
const CL100K: TokenizerName = TokenizerName::Cl100k;
const ALL: Abilities = Abilities::new(true, true, true);
const NO_EFFORT: Abilities = Abilities::new(true, true, false);
const NO_PICTURES: Abilities = Abilities::new(true, false, true);
const TOOLS: Abilities = Abilities::new(true, false, false);
const PICTURES: Abilities = Abilities::new(false, true, false);
const NOTHING: Abilities = Abilities::new(false, false, false);
const GEMINI: f64 = 1.3;
const CLAUDE: f64 = 1.55;
const CLAUDE_TO_4_6: f64 = 1.2;
/// Factor for models with a large vocabulary of their own.
const OPEN: f64 = 1.0;

/// What a model can do; `None` if nobody tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    /// Calls tools.
    pub tools: Option<bool>,
    /// Sees pictures.
    pub pictures: Option<bool>,
    /// Can reason more or less.
    pub effort: Option<bool>,
}

impl Abilities {
    const UNKNOWN: Self = Self { tools: None, pictures: None, effort: None };

    const fn new(tools: bool, pictures: bool, effort: bool) -> Self {
        Self { tools: Some(tools), pictures: Some(pictures), effort: Some(effort) }
    }
}

/// Limit, tokenizer, factor and abilities for the models whose names begin with one of `prefixes`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    /// Beginnings of the models' names, in lower case.
    pub prefixes: &'static [&'static str],
    /// Maximum number of tokens in a request.
    pub limit: u64,
    /// The nearest public vocabulary.
    pub tokenizer: TokenizerName,
    /// Factor from counts in the vocabulary of `tokenizer` to counts of the model.
    pub factor: f64,
    /// True if the vocabulary of `tokenizer` is the model's own.
    pub exact: bool,
    /// What the models can do.
    pub can: Abilities,
}

impl Row {
    const fn can(self, can: Abilities) -> Self {
        Self { can, ..self }
    }
}

/// Creates a row for models that have a public vocabulary.
const fn public(prefixes: &'static [&'static str], limit: u64, tokenizer: TokenizerName) -> Row {
    Row { prefixes, limit, tokenizer, factor: 1.0, exact: true, can: Abilities::UNKNOWN }
}

/// Creates a row for models that have no public vocabulary.
const fn private(prefixes: &'static [&'static str], limit: u64, factor: f64) -> Row {
    Row { prefixes, limit, tokenizer: O200K, factor, exact: false, can: Abilities::UNKNOWN }
}
