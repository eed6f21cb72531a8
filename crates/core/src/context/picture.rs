//! Pictures and PDFs as items: what a file is by its first bytes, and what it costs.

use contexture_value::Value;

use super::item::{Item, Metadata};
use crate::names::names;

names! {
    /// A kind of picture, as the first bytes of the file tell it.
    PictureKind {
        /// PNG.
        Png => "png",
        /// JPEG.
        Jpeg => "jpeg",
        /// GIF.
        Gif => "gif",
        /// WebP.
        Webp => "webp",
        /// A PDF, of which models see the text and the pages.
        Pdf => "pdf",
    }
}

/// Name of the entry in an item's metadata that describes its picture.
pub const PICTURE: &str = "picture";

/// What is known of a picture or PDF. Its content is kept apart, once, by its hash. The text of its
/// item names it or, if a PDF has text, is that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Kind of the file.
    pub kind: PictureKind,
    /// Hash of the content.
    pub hash: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Width in pixels; 0 for a PDF.
    pub width: u64,
    /// Height in pixels; 0 for a PDF.
    pub height: u64,
    /// Number of pages; 0 for a picture.
    pub pages: u64,
    /// True if the item has the text of a PDF.
    pub has_text: bool,
    /// Tokens of a picture for the model that was configured when it was added; 0 for a PDF.
    pub tokens: u64,
}

/// Maximum of each number that is told of a picture: its bytes, its width, its height and its pages.
const MOST: u64 = 1 << 31;

impl Picture {
    /// Returns the picture of an item, if it is one.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let told = metadata.get(PICTURE)?;
        let text = |name| match told.get(name) {
            Some(Value::Str(text)) => Some(text.as_str()),
            _ => None,
        };
        let number = |name| match told.get(name) {
            // A client may say anything here; no picture or PDF has more.
            Some(Value::Int(number)) => u64::try_from(*number).unwrap_or(0).min(MOST),
            _ => 0,
        };
        Some(Self {
            kind: PictureKind::from_name(text("kind")?)?,
            hash: text("hash")?.to_owned(),
            bytes: number("bytes"),
            width: number("width"),
            height: number("height"),
            pages: number("pages"),
            tokens: number("tokens"),
            has_text: told
                .get("has-text")
                .is_some_and(|value| *value != Value::Nil && *value != Value::Bool(false)),
        })
    }

    /// Returns what is known in the form for an item's metadata.
    pub fn told(&self) -> Value {
        let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        Value::Map(vec![
            ("hash".into(), Value::Str(self.hash.clone())),
            ("kind".into(), Value::Str(self.kind.name().to_owned())),
            ("bytes".into(), number(self.bytes)),
            ("width".into(), number(self.width)),
            ("height".into(), number(self.height)),
            ("pages".into(), number(self.pages)),
            ("has-text".into(), Value::Bool(self.has_text)),
            ("tokens".into(), number(self.tokens)),
        ])
    }

    /// Returns the text that names the picture of a file.
    pub fn named(&self, name: &str) -> String {
        let Self { kind, bytes, width, height, pages, .. } = self;
        match kind {
            PictureKind::Pdf => format!("{name}: PDF, {pages} pages, {bytes} bytes"),
            _ => {
                format!("{name}: {} picture, {width} × {height} pixels, {bytes} bytes", kind.name())
            }
        }
    }

    /// Returns the tokens that an item is shown with: those of its picture, else those of its text.
    /// A window counts by the rule of its own model.
    pub fn shown_tokens(item: &Item) -> u64 {
        match Self::of(&item.metadata) {
            Some(picture) if picture.kind != PictureKind::Pdf => picture.tokens,
            _ => item.tokens,
        }
    }

    /// Returns the tokens of the picture in an item for a model.
    pub fn tokens_for(&self, model: &str, item: &Item) -> u64 {
        match self.kind {
            PictureKind::Pdf => {
                tokens_of_pdf(model, self.pages, if self.has_text { item.tokens } else { 0 })
            }
            _ => tokens_of_picture(model, self.width, self.height),
        }
    }
}

/// Width and height that a page of a PDF is counted with, in pixels.
const PAGE: (u64, u64) = (1224, 1584);

impl PictureKind {
    /// Returns the media type.
    pub fn media(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Pdf => "application/pdf",
        }
    }

    /// Returns the kind of a file by its first 12 bytes; `None` if models take no files of this
    /// kind.
    pub fn begun(bytes: &[u8]) -> Option<Self> {
        let starts: [(&[u8], Self); 6] = [
            (b"\x89PNG\r\n\x1a\n", Self::Png),
            (b"GIF87a", Self::Gif),
            (b"GIF89a", Self::Gif),
            (b"\xff\xd8\xff", Self::Jpeg),
            (b"RIFF", Self::Webp),
            (b"%PDF-", Self::Pdf),
        ];
        let (_, kind) = starts.into_iter().find(|(start, _)| bytes.starts_with(start))?;
        // RIFF also holds sounds and films.
        (kind != Self::Webp || bytes.get(8..12) == Some(b"WEBP")).then_some(kind)
    }

    /// Returns the kind of a file with its width and height in pixels, by its first bytes; `None`
    /// if it is no picture that models take, or ends before its size.
    pub fn of(bytes: &[u8]) -> Option<(Self, u64, u64)> {
        let big = |at| number(bytes, at, 4, true);
        let small = |at, count| number(bytes, at, count, false);
        let kind = Self::begun(bytes)?;
        let (width, height) = match kind {
            Self::Png => (big(16)?, big(20)?),
            Self::Gif => (small(6, 2)?, small(8, 2)?),
            Self::Jpeg => size_of_jpeg(bytes)?,
            Self::Webp => match bytes.get(12..16)? {
                b"VP8X" => (small(24, 3)? + 1, small(27, 3)? + 1),
                b"VP8L" => {
                    let both = small(21, 4)?;
                    ((both & 0x3fff) + 1, ((both >> 14) & 0x3fff) + 1)
                }
                _ => (small(26, 2)? & 0x3fff, small(28, 2)? & 0x3fff),
            },
            Self::Pdf => (0, 0),
        };
        Some((kind, width, height))
    }
}

/// Reads an integer of some bytes.
fn number(bytes: &[u8], at: usize, count: usize, is_big: bool) -> Option<u64> {
    let bytes = bytes.get(at..at + count)?;
    let add = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
    Some(match is_big {
        true => bytes.iter().fold(0, add),
        false => bytes.iter().rev().fold(0, add),
    })
}

/// Returns the width and height of a JPEG: they are in the first segment that begins a frame.
fn size_of_jpeg(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut at = 2;
    loop {
        match bytes.get(at..at + 2)? {
            [0xff, 0xff] => at += 1,
            [0xff, 0xc4 | 0xc8 | 0xcc] => at += 2 + usize::from(length(bytes, at)?),
            [0xff, 0xc0..=0xcf] => {
                let of = |place| number(bytes, at + place, 2, true);
                return Some((of(7)?, of(5)?));
            }
            [0xff, 0x01 | 0xd0..=0xd8] => at += 2,
            [0xff, _] => at += 2 + usize::from(length(bytes, at)?),
            _ => return None,
        }
    }
}

/// Returns the length of the segment that begins at a place.
fn length(bytes: &[u8], at: usize) -> Option<u16> {
    u16::try_from(number(bytes, at + 2, 2, true)?).ok()
}

/// Returns the tokens of a picture of this size for a model, by the rule that its vendor publishes.
/// For other models, by patches of 28 pixels, which most open models have.
pub fn tokens_of_picture(model: &str, width: u64, height: u64) -> u64 {
    let model = model.to_lowercase();
    let (width, height) = (width.max(1), height.max(1));
    if model.contains("claude") {
        let (width, height) = within(width, height, 1568);
        return (width * height).div_ceil(750).min(1600);
    }
    if model.contains("gemini") {
        if width <= 384 && height <= 384 {
            return 258;
        }
        let (width, height) = within(width, height, 3072);
        return 258 * width.div_ceil(768) * height.div_ceil(768);
    }
    let is_of_openai = ["gpt-", "o1", "o3", "o4"];
    let own = model.rsplit('/').next().unwrap_or(&model);
    if !is_of_openai.iter().any(|name| own.starts_with(name)) {
        return (width.div_ceil(28) * height.div_ceil(28)).min(4096);
    }
    let (base, tile) = match () {
        () if own.starts_with("gpt-4o-mini") => (2833, 5667),
        () if own.contains("mini") || own.contains("nano") => {
            let patches = (width.div_ceil(32) * height.div_ceil(32)).min(1536);
            let hundredths = match () {
                () if own.contains("nano") => 246,
                () if own.starts_with("o4") => 172,
                () => 162,
            };
            return (patches * hundredths).div_ceil(100);
        }
        () if own.starts_with("gpt-5") => (70, 140),
        () if own.starts_with("o1") || own.starts_with("o3") => (75, 150),
        () => (85, 170),
    };
    let (width, height) = within(width, height, 2048);
    let (width, height) = match width.min(height) {
        shortest if shortest > 768 => (width * 768 / shortest, height * 768 / shortest),
        _ => (width, height),
    };
    base + tile * width.div_ceil(512) * height.div_ceil(512)
}

/// Returns the tokens of a PDF for a model: of its pages as pictures and, except for Gemini, which
/// counts the pages only, of its text.
fn tokens_of_pdf(model: &str, pages: u64, text: u64) -> u64 {
    match model.to_lowercase().contains("gemini") {
        true => 258 * pages,
        false => text + pages * tokens_of_picture(model, PAGE.0, PAGE.1),
    }
}

/// Makes a size smaller until the longer side has at most `most` pixels.
fn within(width: u64, height: u64, most: u64) -> (u64, u64) {
    match width.max(height) {
        longest if longest > most => {
            ((width * most / longest).max(1), (height * most / longest).max(1))
        }
        _ => (width, height),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_size_that_a_client_tells_is_too_large_to_count() {
        for kind in PictureKind::ALL {
            let huge = i64::MAX as u64;
            let told = Picture {
                kind: *kind,
                hash: String::new(),
                bytes: huge,
                width: huge,
                height: huge,
                pages: huge,
                has_text: true,
                tokens: huge,
            };
            let mut metadata = Metadata::default();
            metadata.set(PICTURE, told.told());
            let picture = Picture::of(&metadata).unwrap();
            for model in ["claude", "gemini", "gpt-4o", "gpt-5", "o3", "qwen", "other"] {
                let tokens = tokens_of_picture(model, picture.width, picture.height);
                assert!(tokens < 1 << 50 && tokens_of_pdf(model, picture.pages, 0) < 1 << 50);
            }
        }
    }

    #[test]
    fn the_first_bytes_tell_kind_and_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0";
        let gif = b"GIF89a\x40\x01\xc8\x00";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x0b\x08\x01\xe0\x02\x80\x03";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x7f\xc2\x77\x00";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        let expected: [(&[u8], _); 7] = [
            (png, Some((PictureKind::Png, 640, 480))),
            (gif, Some((PictureKind::Gif, 320, 200))),
            (jpeg, Some((PictureKind::Jpeg, 640, 480))),
            (lossy, Some((PictureKind::Webp, 640, 480))),
            (lossless, Some((PictureKind::Webp, 640, 480))),
            (extended, Some((PictureKind::Webp, 640, 480))),
            (b"%PDF-1.7\n", Some((PictureKind::Pdf, 0, 0))),
        ];
        for (bytes, found) in expected {
            assert_eq!(PictureKind::of(bytes), found);
            // A file that ends early is no picture, and ends nothing else.
            if found.is_some_and(|(kind, ..)| kind != PictureKind::Pdf) {
                (0..bytes.len() - 1)
                    .for_each(|end| assert_eq!(PictureKind::of(&bytes[..end]), None));
            }
        }
        let others: [&[u8]; 3] =
            [b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"RIFF\x24\0\0\0WAVEfmt ", b"GIF8"];
        for other in others {
            assert_eq!((PictureKind::begun(other), PictureKind::of(other)), (None, None));
        }
    }

    #[test]
    fn each_vendor_counts_by_a_rule_of_its_own() {
        for (model, width, height, tokens) in [
            ("claude-sonnet-4-5", 200, 200, 54),
            ("claude-sonnet-4-5", 1000, 1000, 1334),
            ("anthropic/claude-opus-4.6", 4000, 4000, 1600),
            ("gemini-2.5-pro", 300, 300, 258),
            ("gemini-2.5-pro", 960, 540, 516),
            ("gpt-4o", 1024, 1024, 765),
            ("gpt-4o", 2048, 4096, 1105),
            ("gpt-4.1-mini", 1024, 1024, 1659),
            ("gpt-5.2", 512, 512, 210),
            ("qwen2.5vl:7b", 280, 280, 100),
            ("qwen2.5vl:7b", 9000, 9000, 4096),
        ] {
            assert_eq!(tokens_of_picture(model, width, height), tokens, "{model} {width}×{height}");
        }
        assert_eq!(tokens_of_pdf("gemini-2.5-pro", 3, 900), 774);
        assert_eq!(tokens_of_pdf("claude-sonnet-4-5", 3, 900), 900 + 3 * 1600);
        assert_eq!(tokens_of_picture("gpt-4o", u64::from(u32::MAX), 1), 85 + 170 * 4);
    }
}
