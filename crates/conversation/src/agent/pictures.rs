//! The pictures and PDFs among the items of a window: which are shown to the model, and their
//! contents.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{AgentError, Job};
use crate::context::item::{Item, ItemId};
use crate::context::picture::{Picture, PictureKind};
use crate::context::render::report::{ItemFate, ItemVerdict};
use crate::engine::View;
use crate::provider::chat::{Request, ShownAttachment};
use crate::session::message::Role;
use crate::tokens::Counter;
use crate::tokens::model::Model;

/// Maximum number of pictures in a request.
pub const MOST_PICTURES: usize = 20;

/// The pictures that a window can show.
#[derive(Default)]
pub(super) struct SeenPictures {
    /// Each with the id of its item and its tokens.
    pub(super) pictures: Vec<(ItemId, u64, ShownAttachment)>,
    /// Items for which there is no room.
    pub(super) dropped: Vec<ItemVerdict>,
}

/// Takes the pictures out of the items that a window offers, as far as `room` tokens hold them. The
/// text that names a picture stays. A PDF stays as its text for a model that takes no PDF.
///
/// # Errors
/// [`AgentError::Picture`] if the model takes neither a picture nor a text in its place.
pub(super) fn seen(
    views: &mut Vec<View>,
    model: &Model,
    takes_pdf: bool,
    room: u64,
    counter: &dyn Counter,
) -> Result<SeenPictures, AgentError> {
    let (mut seen, mut taken) = (SeenPictures::default(), 0);
    let mut refused = None;
    let sees = model.can.pictures != Some(false);
    views.retain_mut(|view| {
        let Some(picture) = Picture::of(&view.item.metadata) else { return true };
        let is_pdf = picture.kind == PictureKind::Pdf;
        if is_pdf && picture.has_text && !(takes_pdf && sees) {
            return true;
        }
        let path = view.item.metadata.filename().unwrap_or_default().to_owned();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if !sees || (is_pdf && !takes_pdf) {
            let what =
                if is_pdf { "takes no PDF, and this one has no text" } else { "sees no pictures" };
            let advice = "remove it from the context, or ask a model that does";
            refused = Some(format!(
                "{name} ({}) cannot be sent: {} {what}; {advice}",
                view.item.id, model.name
            ));
            return true;
        }
        let tokens = picture.tokens_for(&model.name, &view.item);
        if taken + tokens > room || seen.pictures.len() == MOST_PICTURES {
            let reason = match seen.pictures.len() {
                MOST_PICTURES => format!("a request has at most {MOST_PICTURES} pictures"),
                _ => "no room for this picture".to_owned(),
            };
            let (id, fate) = (view.item.id, ItemFate::Dropped);
            seen.dropped.push(ItemVerdict { id, tokens: 0, fate, reason });
            return false;
        }
        taken += tokens;
        let media = picture.kind.media();
        let mut shown =
            ShownAttachment::new(name.clone(), media, picture.hash.clone(), picture.bytes);
        if picture.has_text {
            shown.text = Some(Arc::clone(&view.item.content));
            // The model reads it in the PDF itself.
            let content = picture.named(&name);
            let (tokens, content) = (counter.count(&content), content.into());
            view.item = Arc::new(Item { content, tokens, ..Item::clone(&view.item) });
        }
        seen.pictures.push((view.item.id, tokens, shown));
        true
    });
    match refused {
        Some(why) => Err(AgentError::Picture(why)),
        None => Ok(seen),
    }
}

/// Adds the pictures of a window to a request, with the last message of the user.
pub(super) fn show(request: &mut Request, pictures: &[ShownAttachment]) {
    let of_user = request.messages.iter_mut().rfind(|said| said.role == Role::User);
    if let Some(said) = of_user {
        said.pictures = pictures.to_vec();
    }
}

/// Puts the contents of its pictures into a request.
///
/// # Errors
/// Those of the engine, and [`AgentError::Picture`] if a content is not kept here.
pub(super) async fn with_contents(job: &Job, mut request: Request) -> Result<Request, AgentError> {
    let shown = request.messages.iter().flat_map(|said| &said.pictures);
    let names: Vec<String> = shown.map(|shown| shown.hash.clone()).collect();
    if names.is_empty() {
        return Ok(request);
    }
    let read = job.ask(move |engine| {
        let mut kept = HashMap::new();
        for name in names {
            if let Some(content) = engine.read().picture(&name)? {
                kept.insert(name, STANDARD.encode(content));
            }
        }
        Ok(kept)
    });
    let kept = read.await?;
    for shown in request.messages.iter_mut().flat_map(|said| &mut said.pictures) {
        let Some(content) = kept.get(&shown.hash) else {
            let why = format!("the content of {} is not kept here; add it again", shown.name);
            return Err(AgentError::Picture(why));
        };
        shown.data = content.as_str().into();
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::item::{Kind, Metadata};
    use crate::tokens::Estimate;
    use crate::value::Value;

    fn view(id: u64, kind: PictureKind, pages: u64, has_text: bool) -> View {
        let hash = format!("{id}");
        let picture =
            Picture { kind, hash, bytes: 9, width: 750, height: 100, pages, has_text, tokens: 0 };
        let mut metadata = Metadata::default();
        metadata.set("filename", Value::Str(format!("/x/{id}")));
        metadata.set("picture", picture.told());
        let item = Item {
            id: ItemId(id),
            kind: Kind::File,
            content: "text".into(),
            metadata,
            timestamp: 0,
            taken_ms: 0,
            tokens: 10,
            counted_by: "estimate",
            live: false,
        };
        View {
            item: Arc::new(item),
            pinned: false,
            since: 0,
            manager: "m".into(),
            held: Vec::new(),
        }
    }

    #[test]
    fn each_model_gets_what_it_takes_and_the_rest_is_refused_or_told() {
        let model = |name| Model::named(name, &[]);
        let claude = model("claude-sonnet-4-5");
        let all = || vec![view(1, PictureKind::Png, 0, false), view(2, PictureKind::Pdf, 1, true)];
        let mut views = all();
        let tokens = |seen: &SeenPictures| seen.pictures.iter().map(|it| it.1).collect::<Vec<_>>();
        let by = seen(&mut views, &claude, true, 5000, &Estimate).unwrap();
        assert_eq!(tokens(&by), [100, 10 + 1600]);
        assert_eq!(&*views[1].item.content, "2: PDF, 1 pages, 9 bytes");
        // Without room, the item says so.
        let by = seen(&mut all(), &claude, true, 500, &Estimate).unwrap();
        assert_eq!((tokens(&by), by.dropped[0].id), (vec![100], ItemId(2)));
        // A PDF as its text.
        let mut views = all();
        let by = seen(&mut views, &claude, false, 5000, &Estimate).unwrap();
        assert_eq!((tokens(&by), &*views[1].item.content), (vec![100], "text"));
        let told = |views: &mut Vec<View>, model: &Model| {
            seen(views, model, false, 5000, &Estimate)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        let blind = told(&mut all(), &model("gpt-3.5-turbo"));
        assert!(blind.contains("ctx-1") && blind.contains("sees no pictures"), "{blind}");
        let scanned = told(&mut vec![view(3, PictureKind::Pdf, 1, false)], &claude);
        assert!(scanned.contains("has no text"), "{scanned}");
    }
}
