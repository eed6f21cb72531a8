//! Reads the token counts in a server's error about a request that is too long. The forms are those
//! seen in practice; a test has an example of each.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// The token counts in a refusal, in the server's own tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overflow {
    /// Maximum number of tokens in a request and its answer together; for servers that limit only
    /// the request, in the request.
    pub limit: Option<u64>,
    /// Number of tokens of the request.
    pub input: Option<u64>,
    /// Number of tokens reserved for the answer.
    pub output: Option<u64>,
    /// Number of tokens over the limit, from servers that report nothing else.
    pub excess: Option<u64>,
}

/// Patterns in the order in which they are tried. `total` is input plus output.
const FORMS: &[&str] = &[
    // llama.cpp
    r"request \(<input> tokens\) exceeds the available context size \(<limit> tokens\)",
    r"n_keep: <input>\s*>=\s*n_ctx: <limit>",
    // llama-cpp-python
    r"requested tokens \(<input>\) exceed context window of <limit>",
    // vLLM
    r"passed <input> input tokens and requested <output> output tokens.* context length is only <limit>",
    r"context length is <limit> tokens and your request has <input> input tokens \(<output> >",
    r"context length is <limit> tokens.* requested <output> output tokens and your prompt contains (?:at least )?<input> input",
    r"context length is <limit> tokens.* your request has <input> input tokens",
    // OpenAI, DeepSeek, vLLM; OpenRouter
    r"context length is <limit> tokens.* requested (?:about )?<total> tokens.*?<output> in the (?:completion|output)",
    r"context length is <limit> tokens.* (?:messages resulted in|requested)(?: about)? <total> tokens",
    // OpenAI and Groq, for a request above the limit of tokens per minute
    r"request too large.* limit:? <limit>, requested:? <input>",
    // Anthropic
    r"exceed context limit: <input> \+ <output> > <limit>",
    r"prompt is too long: <input> tokens > <limit>",
    // Gemini
    r"input token count \(?<input>\)? exceeds the maximum number of tokens allowed \(?<limit>",
    // LM Studio
    r"keep the first <input> tokens.* context length of only <limit> tokens",
    r"reached context length of <limit> tokens",
    // SGLang
    r"context length of <limit> tokens\. you requested a total of <total> tokens.* <output> tokens for the completion",
    r"input \(<input> tokens\) is longer than the model's context length \(<limit> tokens",
    // Hugging Face's text generation inference, Together
    r"must be <= <limit>\. given: <input> `?inputs`? tokens and <output> `?max_new_tokens",
    r"must have less than <limit> tokens\. given: <input>",
    // Mistral, xAI, Fireworks, Cohere, GitHub
    r"prompt contains <input> tokens.* model with <limit> maximum context length",
    r"maximum prompt length is <limit> but the request contains <input> tokens",
    r"prompt is too long: <input>, model maximum context length: <limit>",
    r"prompt cannot exceed <limit> - received <input>",
    r"prompt token count of <input> exceeds the limit of <limit>",
    // Cerebras, watsonx, SambaNova
    r"current length is <input> while limit is <limit>",
    r"number of input tokens <input> cannot exceed the total tokens limit <limit>",
    r"provided prompt is <input> tokens long",
    // Ollama
    r"exceeded max context length by <excess> tokens",
    // Servers that give only the limit
    r"(?:context (?:length|window|size)|prompt length)(?: of the model)?(?: is| of)?:? (?:only )?<limit>",
];

static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let name = Regex::new("<([a-z]+)>").ok();
    let whole = |form: &&str| {
        let figures = name.as_ref().map(|name| name.replace_all(form, r"(?P<$1>\d[\d,_]*)"));
        Regex::new(&format!("(?is){}", figures.as_deref().unwrap_or(form)))
    };
    FORMS.iter().filter_map(|form| whole(form).ok()).collect()
});

impl Overflow {
    /// Reads the message of a refusal.
    pub(super) fn read(said: &str) -> Option<Self> {
        COMPILED.iter().find_map(|form| form.captures(said)).map(|found| Self::of(&found))
    }

    /// Reads the body of a refusal: llama.cpp's fields if present, else the message.
    pub(super) fn read_body(json: Option<&Value>, said: &str) -> Option<Self> {
        let error = json.map(|json| &json["error"]);
        let field = |name: &str| error.and_then(|error| error[name].as_u64());
        let input = field("n_prompt_tokens");
        let of_fields = |limit| Self { limit: Some(limit), input, ..Self::default() };
        field("n_ctx").map(of_fields).or_else(|| Self::read(said))
    }

    fn of(found: &Captures<'_>) -> Self {
        let figure = |name: &str| {
            let text = found.name(name)?.as_str().replace([',', '_'], "");
            text.parse::<u64>().ok().filter(|figure| *figure > 0)
        };
        let (total, output) = (figure("total"), figure("output"));
        let rest = total.map(|total| total.saturating_sub(output.unwrap_or(0)));
        Self {
            limit: figure("limit"),
            input: figure("input").or(rest),
            output,
            excess: figure("excess"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &str, limit: u64, input: u64, output: u64) {
        let some = |figure| (figure > 0).then_some(figure);
        let (limit, input, output) = (some(limit), some(input), some(output));
        let expected = Overflow { limit, input, output, excess: None };
        assert_eq!(Overflow::read(said), Some(expected), "{said}");
    }

    #[test]
    fn every_form_is_one_that_can_be_read() {
        assert_eq!(COMPILED.len(), FORMS.len());
    }

    #[test]
    fn llama_cpp_and_those_who_build_on_it() {
        check(
            "request (3024 tokens) exceeds the available context size (1024 tokens), try \
             increasing it",
            1024,
            3024,
            0,
        );
        check("Requested tokens (2285) exceed context window of 2048", 2048, 2285, 0);
        check(
            "Trying to keep the first 111490 tokens when context the overflows. However, the model \
             is loaded with context length of only 32768 tokens, which is not enough. Try to load \
             the model with a larger context length, or provide a shorter input.",
            32_768,
            111_490,
            0,
        );
        check(
            "Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not \
             currently support mid-generation context overflow.",
            4096,
            0,
            0,
        );
        check(
            "The number of tokens to keep from the initial prompt is greater than the context \
             length (n_keep: 12345>= n_ctx: 8192). Try to load the model with a larger context \
             length, or provide a shorter input.",
            8192,
            12_345,
            0,
        );
        let json = serde_json::json!({"error": {
            "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256,
            "message": "the request exceeds the available context size. try increasing the context \
                        size or enable context shift",
        }});
        let read = Overflow::read_body(Some(&json), "the request exceeds").unwrap();
        assert_eq!((read.limit, read.input), (Some(256), Some(1407)));
    }

    #[test]
    fn openai_and_those_who_speak_like_it() {
        check(
            "This model's maximum context length is 4097 tokens. However, your messages resulted \
             in 7575 tokens. Please reduce the length of the messages.",
            4097,
            7575,
            0,
        );
        check(
            "This model's maximum context length is 8192 tokens. However, you requested 8213 \
             tokens (6683 in the messages, 730 in the functions, and 800 in the completion).",
            8192,
            7413,
            800,
        );
        check(
            "This model's maximum context length is 16384 tokens. However, you requested 122946 \
             tokens (112946 in the messages, 10000 in the completion). Please reduce the length \
             of the messages or completion.",
            16_384,
            112_946,
            10_000,
        );
        check(
            "This endpoint's maximum context length is 32768 tokens. However, you requested about \
             42832 tokens (42832 of text input). Please reduce the length of either one, or use \
             the \"middle-out\" transform to compress your prompt automatically.",
            32_768,
            42_832,
            0,
        );
        check(
            "This endpoint's maximum context length is 32768 tokens. However, you requested about \
             46928 tokens (42832 of text input, 4096 in the output).",
            32_768,
            42_832,
            4096,
        );
        check(
            "Request too large for gpt-4 in organization org-x on tokens per min (TPM): Limit \
             30000, Requested 35012. The input or output tokens must be reduced.",
            30_000,
            35_012,
            0,
        );
        check("maximum context length is 8", 8, 0, 0);
    }

    #[test]
    fn vllm_and_sglang() {
        check(
            "This model's maximum context length is 16384 tokens. However, your request has 19427 \
             input tokens. Please reduce the length of the input messages. \
             (parameter=input_tokens, value=19427)",
            16_384,
            19_427,
            0,
        );
        check(
            "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum \
             context length is 4096 tokens and your request has 30 input tokens (5000 > 4096 - \
             30).",
            4096,
            30,
            5000,
        );
        check(
            "You passed 5000 input tokens and requested 100 output tokens. However, the model's \
             context length is only 4096 tokens, resulting in a maximum input length of 3996 \
             tokens.",
            4096,
            5000,
            100,
        );
        check(
            "This model's maximum context length is 4096 tokens. However, you requested 100 output \
             tokens and your prompt contains at least 5000 input tokens, for a total of at least \
             5100 tokens.",
            4096,
            5000,
            100,
        );
        check(
            "The input (85050 tokens) is longer than the model's context length (32768 tokens).",
            32_768,
            85_050,
            0,
        );
        check(
            "Requested token count exceeds the model's maximum context length of 32768 tokens. You \
             requested a total of 40000 tokens: 35000 tokens from the input messages and 5000 \
             tokens for the completion.",
            32_768,
            35_000,
            5000,
        );
    }

    #[test]
    fn anthropic_gemini_and_others() {
        check("prompt is too long: 209353 tokens > 199999 maximum", 199_999, 209_353, 0);
        check(
            "input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000, decrease \
             input length or `max_tokens` and try again",
            200_000,
            174_167,
            64_000,
        );
        check(
            "The input token count (314175) exceeds the maximum number of tokens allowed (131072).",
            131_072,
            314_175,
            0,
        );
        check(
            "The input token count 314175 exceeds the maximum number of tokens allowed 131072.",
            131_072,
            314_175,
            0,
        );
        check(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: \
             4000 `inputs` tokens and 200 `max_new_tokens`",
            4096,
            4000,
            200,
        );
        check(
            "Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 \
             maximum context length",
            32_768,
            33_000,
            0,
        );
        check(
            "This model's maximum prompt length is 131072 but the request contains 143000 tokens.",
            131_072,
            143_000,
            0,
        );
        check("The prompt is too long: 5000, model maximum context length: 4096", 4096, 5000, 0);
        check("Current length is 9000 while limit is 8192", 8192, 9000, 0);
        check(
            "the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this \
             model",
            8192,
            9000,
            0,
        );
        check(
            "Requested generation length 4096 is not possible! The provided prompt is 9000 tokens \
             long",
            0,
            9000,
            0,
        );
        check("prompt token count of 200,000 exceeds the limit of 128,000", 128_000, 200_000, 0);
    }

    #[test]
    fn what_a_proxy_wraps_is_read_too() {
        check(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicError - \
             b'{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\
             \"prompt is too long: 205668 tokens > 200000 maximum\"}}'. Received Model Group=x",
            200_000,
            205_668,
            0,
        );
        check(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: \
             ContextWindowExceededError: OpenAIException - This model's maximum context length is \
             13500 tokens. However, you requested 14032 tokens (9936 in the messages, 4096 in the \
             completion). Please reduce the length of the messages or completion.",
            13_500,
            9936,
            4096,
        );
    }

    #[test]
    fn ollama_says_by_how_much_or_nothing() {
        let read = Overflow::read("prompt too long; exceeded max context length by 123 tokens");
        assert_eq!(read, Some(Overflow { excess: Some(123), ..Overflow::default() }));
        assert_eq!(Overflow::read("the input length exceeds the context length"), None);
    }

    #[test]
    fn figures_that_no_server_means_are_no_defect() {
        let many = "9".repeat(40);
        let said = format!("prompt is too long: {many} tokens > {many} maximum");
        assert_eq!(Overflow::read(&said), Some(Overflow::default()));
    }
}
