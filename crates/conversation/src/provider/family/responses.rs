//! `OpenAI`'s Responses API. The server is asked to store nothing, so all of a conversation is sent
//! each time, and the items of an answer with its reasoning go back as they came.

use serde_json::{Value, json};

use super::calls::{self, CallPiece};
use super::shape::{
    Shaped, figure, first, has_one, index, kind, list, mended_value, object, said, text, word,
};
use super::{Broken, Decoder, FamilyFacts, GatheredAnswer, effort, openai, schema, set, stop};
use crate::provider::chat::{
    ChatMessage, OutputSchema, Request, ShownAttachment, Stop, ToolDefinition, Usage,
};
use crate::provider::error::ErrorKind;
use crate::provider::refusal::ServerRefusal;
use crate::session::message::{Role, ToolCall};

/// What is asked for in addition: reasoning in a form that can be sent back.
pub(in crate::provider) const INCLUDED: &str = "reasoning.encrypted_content";

pub(super) static FACTS: FamilyFacts = FamilyFacts {
    azure: Some(|_| "/openai/responses".to_owned()),
    chat: |_| "/responses".to_owned(),
    takes_pdf: Some(true),
    joins_results: true,
    effort: effort::responses,
    body: |_, model, request, _| body(model, request),
    decoder: || Box::<ResponsesDecoder>::default(),
    ..openai::FACTS
};

pub(super) fn body(model: &str, request: &Request) -> Value {
    let leading = request.messages.iter().take_while(|said| said.role == Role::System).count();
    let (instructions, rest) = request.messages.split_at(leading);
    let mut body = json!({
        "model": model,
        "input": rest.iter().flat_map(items).collect::<Vec<_>>(),
        "stream": true,
        "store": false,
        "include": [INCLUDED],
    });
    let instructions: Vec<&str> = instructions.iter().map(|said| &*said.content).collect();
    set(&mut body, "instructions", (leading > 0).then(|| instructions.join("\n\n")));
    set(&mut body, "max_output_tokens", request.max_tokens);
    set(&mut body, "temperature", request.temperature);
    set(&mut body, "top_p", request.top_p);
    if !request.tools.is_empty() {
        // Without this member, each schema would have to list all of its properties as required.
        let tool = |tool: &ToolDefinition| {
            json!({"type": "function", "name": tool.name, "description": tool.description,
                   "parameters": schema(tool), "strict": false})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
        let of_tool = |name: &str| json!({"type": "function", "name": name});
        set(&mut body, "tool_choice", request.choice.word(of_tool));
    }
    let form = |form: &OutputSchema| {
        let OutputSchema { name, schema } = form;
        json!({"format": {"type": "json_schema", "name": name, "schema": schema, "strict": true}})
    };
    set(&mut body, "text", request.output.as_ref().map(form));
    body
}

fn items(said: &ChatMessage) -> Vec<Value> {
    if let (Role::Tool, Some(id)) = (said.role, &said.tool_call_id) {
        let output = &*said.content;
        return vec![json!({"type": "function_call_output", "call_id": id, "output": output})];
    }
    if let Some(Value::Array(kept)) = said.kept() {
        let mut calls = said.tool_calls.iter();
        let sent = kept.iter().filter(|item| item.is_object()).cloned().map(|mut item| {
            // An id that an earlier call has, too, was replaced.
            if item["type"] == "function_call"
                && let Some(call) = calls.next()
            {
                item["call_id"] = (*call.id).into();
            }
            item
        });
        return sent.collect();
    }
    let (role, part) = match said.role {
        Role::Assistant => ("assistant", "output_text"),
        Role::System | Role::User | Role::Tool => ("user", "input_text"),
    };
    // Checked with OpenAI's guide to PDF files (developers.openai.com/docs/guides/pdf-files).
    let picture = |shown: &ShownAttachment| match shown.is_pdf() {
        true => json!({"type": "input_file", "filename": shown.name, "file_data": shown.url()}),
        false => json!({"type": "input_image", "image_url": shown.url(), "detail": "auto"}),
    };
    let mut content: Vec<Value> = said.pictures.iter().map(picture).collect();
    if !said.content.is_empty() {
        content.push(json!({"type": part, "text": &*said.content}));
    }
    let message =
        (!content.is_empty()).then(|| json!({"type": "message", "role": role, "content": content}));
    let call = |call: &ToolCall| {
        json!({"type": "function_call", "call_id": call.id, "name": call.name,
               "arguments": call.arguments})
    };
    message.into_iter().chain(said.tool_calls.iter().map(call)).collect()
}

/// An item of an answer.
#[derive(Default)]
struct ResponsesItem {
    index: Option<u64>,
    /// The item as it came last.
    said: Value,
    /// True once its text or reasoning has been passed on.
    is_told: bool,
    /// True once it came as a whole.
    is_done: bool,
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct ResponsesDecoder {
    items: Vec<ResponsesItem>,
    has_refused: bool,
}

impl Decoder for ResponsesDecoder {
    fn take(&mut self, said: &Value, out: &mut GatheredAnswer) -> Result<(), Broken> {
        let index = index("output_index", &said["output_index"])?;
        match kind("type", &said["type"])? {
            "response.output_item.added" => self.item(index, &said["item"], false, out),
            "response.output_item.done" => self.item(index, &said["item"], true, out),
            "response.output_text.delta" => self.more(index, said, false, out),
            "response.refusal.delta" => {
                self.has_refused = true;
                self.more(index, said, false, out)
            }
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                self.more(index, said, true, out)
            }
            "response.function_call_arguments.delta" => {
                // A part of the arguments is text; only all of them may be an object.
                word("delta", &said["delta"])?;
                self.more_arguments(index, said, &said["delta"], out)
            }
            "response.function_call_arguments.done" => {
                self.more_arguments(index, said, &said["arguments"], out)
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let response = object("response", &said["response"])?;
                let what = "the end of the answer has no response";
                self.end(response.ok_or_else(|| Broken::malformed(what))?, out)
            }
            // The whole answer, in place of a stream.
            "" if said["object"] == "response" => self.end(said, out),
            "" => Err(Broken::malformed("an event of the answer has no type")),
            // Beginnings and ends of parts, and what was added later.
            _ => Ok(()),
        }
    }

    fn kept(&mut self, calls: &[ToolCall], _: &GatheredAnswer) -> Value {
        let items = std::mem::take(&mut self.items);
        let mut items: Vec<Value> =
            items.into_iter().map(|item| mended_value(&item.said)).collect();
        items.retain(|item| item.is_object() && !is_reference(item));
        // Reasoning must come before what follows from it.
        while items.last().is_some_and(is_reasoning) {
            items.pop();
        }
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.retain(|_, value| !value.is_null());
        }
        let mut made: Vec<&mut Value> =
            items.iter_mut().filter(|item| item["type"] == "function_call").collect();
        if made.len() != calls.len() {
            return Value::Null;
        }
        for (item, call) in made.iter_mut().zip(calls) {
            item["call_id"] = (*call.id).into();
            item["arguments"] = (*call.arguments).into();
        }
        match items.iter().any(is_reasoning) {
            true => items.into(),
            false => Value::Null,
        }
    }
}

impl ResponsesDecoder {
    /// Finds the item to which an event belongs, by its id or its place in the answer.
    fn place(&self, index: Option<u64>, id: &str) -> Option<usize> {
        let by_id = || self.items.iter().rposition(|it| !id.is_empty() && it.said["id"] == *id);
        let by_index = || self.items.iter().rposition(|it| index.is_some() && it.index == index);
        let last = || self.items.iter().rposition(|it| !it.is_done);
        by_id().or_else(by_index).or_else(|| last().filter(|_| index.is_none() && id.is_empty()))
    }

    /// Finds the item that an item repeats or completes.
    fn known(&self, index: Option<u64>, item: &Value, is_done: bool) -> Option<usize> {
        let is_like = |it: &ResponsesItem| it.said.is_null() || it.said["type"] == item["type"];
        let same = |name: &str| {
            let id = &item[name];
            self.items.iter().rposition(|it| !id.is_null() && is_like(it) && it.said[name] == *id)
        };
        // Some servers give an item other ids at its end.
        let open = |it: &ResponsesItem| {
            let has_place = index.is_none() || it.index.is_none() || it.index == index;
            !it.is_done && is_like(it) && has_place && it.said["call_id"].is_null()
        };
        let is_call = item["type"] == "function_call";
        let has_id = is_call && !item["call_id"].is_null();
        let by_place = || self.items.iter().position(|it| is_done && !has_id && open(it));
        let again = |it: &ResponsesItem| {
            let is_there = index.is_some() && it.index == index && !it.is_done;
            is_there && is_like(it) && it.said["name"] == item["name"]
        };
        let by_name = || self.items.iter().position(|it| is_done && has_id && again(it));
        same("call_id")
            .filter(|_| is_call)
            .or_else(|| same("id"))
            .or_else(by_place)
            .or_else(by_name)
    }

    fn item(
        &mut self,
        index: Option<u64>,
        item: &Value,
        is_done: bool,
        out: &mut GatheredAnswer,
    ) -> Shaped<()> {
        let Some(item) = object("item", item)? else { return Ok(()) };
        has_one("item", item, &["type"])?;
        let place = self.known(index, item, is_done).unwrap_or(self.items.len());
        if place == self.items.len() {
            self.items.push(ResponsesItem { index, ..ResponsesItem::default() });
        }
        let is_told = self.items[place].is_told;
        match kind("type", &item["type"])? {
            "function_call" => {
                let id = word("call_id", first(item, &["call_id", "id"]))?;
                // A call keeps its first id.
                let is_named = !self.items[place].said["call_id"].is_null();
                let id = if is_named { String::new() } else { id };
                let (name, more) =
                    (calls::name(&item["name"])?, calls::arguments(&item["arguments"])?);
                out.calls.add_at(place, CallPiece::new(id, name, more))?;
            }
            "message" => {
                let content = said("content", &item["content"])?;
                if is_done && !is_told {
                    let parts = list("content", &item["content"]).unwrap_or_default();
                    self.has_refused |= parts.iter().any(|part| part["type"] == "refusal");
                    out.reasoning(&content.reasoning);
                    out.text(&content.text);
                }
            }
            "reasoning" => {
                let summary = text("summary", &item["summary"])?;
                let whole = text("content", &item["content"])?;
                if is_done && !is_told {
                    out.reasoning(if whole.is_empty() { &summary } else { &whole });
                }
            }
            "" => return Err(Broken::malformed("an item of the answer has no type")),
            _ => {}
        }
        let known = &mut self.items[place];
        known.is_told |= is_done;
        known.is_done |= is_done;
        known.said = item.clone();
        Ok(())
    }

    /// Adds more of a text, or of reasoning.
    fn more(
        &mut self,
        index: Option<u64>,
        said: &Value,
        thinks: bool,
        out: &mut GatheredAnswer,
    ) -> Shaped<()> {
        let id = word("item_id", &said["item_id"])?;
        let more = text("delta", &said["delta"])?;
        let place = self.place(index, &id).unwrap_or(self.items.len());
        if place == self.items.len() {
            self.items.push(ResponsesItem { index, ..ResponsesItem::default() });
        }
        self.items[place].is_told |= !more.is_empty();
        if thinks {
            out.reasoning(&more);
        } else {
            out.text(&more);
        }
        Ok(())
    }

    fn more_arguments(
        &self,
        index: Option<u64>,
        said: &Value,
        more: &Value,
        out: &mut GatheredAnswer,
    ) -> Shaped<()> {
        let more = calls::arguments(more)?;
        let id = word("item_id", &said["item_id"])?;
        let is_call = |place: &usize| self.items[*place].said["type"] == "function_call";
        let is_ambiguous = index.is_none() && id.is_empty() && {
            let open = |it: &&ResponsesItem| !it.is_done && it.said["type"] == "function_call";
            self.items.iter().filter(open).nth(1).is_some()
        };
        let place = self.place(index, &id).filter(is_call).filter(|_| !is_ambiguous);
        let what = "the arguments of a call come without the call";
        let place = place.ok_or_else(|| Broken::malformed(what))?;
        out.calls.add_at(place, CallPiece::new(String::new(), String::new(), more))
    }

    /// Reads the response at the end, which has all items again.
    fn end(&mut self, response: &Value, out: &mut GatheredAnswer) -> Result<(), Broken> {
        if let Some(refusal) = ServerRefusal::in_answer(response) {
            return Err(refusal.into());
        }
        has_one("response", response, &["id", "object", "output", "status"])?;
        let output = list("output", &response["output"])?;
        let is_call = |item: &&Value| item["type"] == "function_call";
        let known = self.items.iter().filter(|it| is_call(&&it.said)).count();
        let mut missing = output.iter().filter(is_call).count().saturating_sub(known);
        let was_told = |kind: &Value| {
            self.items.iter().any(|it| it.said.is_null() || it.said["type"] == *kind)
        };
        let told: Vec<bool> = output.iter().map(|item| was_told(&item["type"])).collect();
        for (at, (item, was_told)) in output.iter().zip(told).enumerate() {
            let is_known = self.known(Some(at as u64), item, true).is_some();
            // What came before is not told again.
            let is_new = if is_call(&item) { missing > 0 } else { !was_told };
            if is_known || is_new {
                self.item(Some(at as u64), item, true, out)?;
            }
            missing -= usize::from(is_call(&item) && !is_known && is_new);
        }
        if response["usage"].is_object() {
            out.usage(usage(&response["usage"]));
        }
        let why = stop(&response["incomplete_details"]["reason"])?;
        out.stop = Some(match kind("status", &response["status"])? {
            "completed" | "" if self.has_refused && out.calls.is_empty() => Stop::Refused,
            "completed" | "" => Stop::Finished,
            "incomplete" => why.unwrap_or(Stop::Length),
            status => {
                let what = format!("the answer broke off: {status}");
                return Err(ServerRefusal::new(ErrorKind::Unavailable, what).into());
            }
        });
        out.is_done = true;
        Ok(())
    }
}

fn is_reasoning(item: &Value) -> bool {
    item["type"] == "reasoning"
}

/// Returns whether an item is reasoning of which only its place at the server came, where nothing
/// was stored.
fn is_reference(item: &Value) -> bool {
    let is_open = item["content"].as_array().is_some_and(|parts| !parts.is_empty());
    is_reasoning(item) && !item["encrypted_content"].is_string() && !is_open
}

fn usage(said: &Value) -> Usage {
    Usage {
        input: figure(&said["input_tokens"]),
        output: figure(&said["output_tokens"]),
        cache_read: figure(&said["input_tokens_details"]["cached_tokens"]),
        cache_written: None,
        reasoning: figure(&said["output_tokens_details"]["reasoning_tokens"]),
    }
}

#[cfg(test)]
mod tests;
