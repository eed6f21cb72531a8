//! What must hold of any bytes a client may send, and of any template; the fuzz targets and
//! `tests/it/wire_fuzz.rs` both run these.

/// Reading never panics, and what reads is printed on one line that reads as the same again.
pub(crate) mod sexp {
    use contexture_program::internals::value::Value;
    use contexture_program::internals::value::json::{from_json, to_json};
    use contexture_program::internals::value::sexp::{print, read};
    use contexture_program::internals::wire::dialect::{Dialect, Encoder};
    use contexture_program::internals::wire::message::{Incoming, Outgoing, RequestId};

    pub(crate) fn check(data: &[u8]) {
        for dialect in Dialect::ALL {
            check_message(*dialect, data);
        }
        if let Ok(value) = read(&String::from_utf8_lossy(data)) {
            check_printed(&value);
            check_json(&value);
        }
        if let Ok(value) = from_json(data) {
            check_json(&value);
        }
    }

    /// Any answer to any message is one line, or a payload of the length that is said.
    fn check_message(dialect: Dialect, data: &[u8]) {
        let answer = match dialect.decode(data) {
            Incoming::Ignored => return,
            Incoming::Call(call) => Outgoing::Reply(call.id, Ok(call.params)),
            Incoming::Invalid(id, error) => {
                Outgoing::Reply(id.or(Some(RequestId::Int(0))), Err(error))
            }
            Incoming::Methods(id) => Outgoing::Reply(id, Ok(Value::Nil)),
            Incoming::Talk(talk) => Outgoing::Event(Value::Str(format!("{talk:?}"))),
        };
        let mut written = Vec::new();
        let length = Encoder::new(dialect).encode(&answer, &mut written);
        let text = String::from_utf8(written).expect("answers are UTF-8");
        if let Some(payload) = text.get(6..).filter(|_| dialect.is_framed()) {
            assert_eq!((&text[..6], payload.len()), (&*format!("{length:06x}"), length));
            if !payload.is_empty() {
                read(payload).expect("answers are readable");
            }
            return;
        }
        assert_eq!((memchr_all(text.as_bytes()), length), (vec![text.len() - 1], text.len()));
        match dialect {
            Dialect::Json => drop(from_json(text.as_bytes()).expect("answers are JSON")),
            _ => drop(read(&text).expect("answers are readable")),
        }
    }

    fn memchr_all(line: &[u8]) -> Vec<usize> {
        line.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect()
    }

    fn check_printed(value: &Value) {
        let printed = print(value);
        assert!(!printed.contains(['\n', '\r']), "{printed}");
        let again = read(&printed).expect("what is printed reads again");
        assert_eq!(print(&again), printed);
        // Line ends in names are the one thing that printing changes.
        if !printed.contains(['\u{240A}', '\u{240D}']) {
            assert_eq!(format!("{again:?}"), format!("{value:?}"), "{printed}");
        }
    }

    fn check_json(value: &Value) {
        let mut json = Vec::new();
        to_json(value, &mut json);
        assert!(!json.contains(&b'\n'), "{value:?}");
        let again = from_json(&json).expect("what is written is JSON");
        let mut twice = Vec::new();
        to_json(&again, &mut twice);
        assert_eq!(String::from_utf8(twice), String::from_utf8(json));
    }
}

/// A stream gives the same frames however it is cut, and the frames are those of a plain split.
pub(crate) mod frame {
    use bytes::{Bytes, BytesMut};
    use contexture_program::internals::wire::frame::{
        Frame, HEADER_BYTES, MessageEnds, StreamDecoder,
    };
    use tokio_util::codec::Decoder;

    /// The first two bytes choose the limit and the size of the pieces.
    pub(crate) fn check(data: &[u8]) {
        let [limit, piece, stream @ ..] = data else { return };
        check_stream(stream, *limit, *piece);
        // The same as payloads, so that most streams are not lost at their first header.
        let framed = stream.split_inclusive(|byte| *byte == b'(').flat_map(|payload| {
            let mut framed = format!("{:06x}", payload.len()).into_bytes();
            framed.extend_from_slice(payload);
            framed
        });
        check_stream(&framed.collect::<Vec<u8>>(), *limit, *piece);
    }

    fn check_stream(stream: &[u8], limit: u8, piece: u8) {
        let limit = usize::from(limit % 32);
        let header =
            stream.get(..HEADER_BYTES).is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit));
        let expected = if header { payloads(stream, limit) } else { split(stream, limit) };
        for size in [usize::from(piece % 16) + 1, 1, stream.len().max(1)] {
            let frames = decode(stream, limit, size);
            assert_eq!(frames, expected, "limit {limit}, pieces of {size}");
        }
    }

    /// What a decoder makes of a stream that comes in pieces of this size.
    pub(crate) fn decode(stream: &[u8], limit: usize, size: usize) -> Vec<Frame> {
        let mut decoder = StreamDecoder::new(limit);
        let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
        for piece in stream.chunks(size) {
            buffer.extend_from_slice(piece);
            while let Some(frame) = decoder.decode(&mut buffer).expect("lines never fail") {
                frames.push(frame);
            }
            assert!(
                buffer.len() <= limit.max(HEADER_BYTES) + 1,
                "an overlong line is kept in memory"
            );
        }
        while let Some(frame) = decoder.decode_eof(&mut buffer).expect("lines never fail") {
            frames.push(frame);
        }
        frames
    }

    /// The payloads of a stream that begins with a header.
    pub(crate) fn payloads(mut stream: &[u8], limit: usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(header) = stream.get(..HEADER_BYTES) {
            let digits = header.iter().all(u8::is_ascii_hexdigit);
            let length = std::str::from_utf8(header).ok().filter(|_| digits);
            let Some(length) = length.and_then(|digits| usize::from_str_radix(digits, 16).ok())
            else {
                frames.push(Frame::Lost { header: Bytes::copy_from_slice(header) });
                break;
            };
            let rest = &stream[HEADER_BYTES..];
            let Some(payload) = rest.get(..length) else { break };
            frames.push(match length > limit {
                true => {
                    let ends = MessageEnds::of(payload);
                    Frame::TooLong { bytes: length as u64, limit, ends, is_payload: true }
                }
                false => Frame::Payload(Bytes::copy_from_slice(payload)),
            });
            stream = &rest[length..];
        }
        frames
    }

    fn split(stream: &[u8], limit: usize) -> Vec<Frame> {
        let line = |piece: &[u8]| {
            let whole = piece.strip_suffix(b"\n");
            let line = match whole {
                Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
                None => piece,
            };
            match line.len() {
                length if length > limit => {
                    let ends = MessageEnds::of(whole.unwrap_or(piece));
                    Frame::TooLong { bytes: length as u64, limit, ends, is_payload: false }
                }
                _ => Frame::Line(line.to_vec().into()),
            }
        };
        stream.split_inclusive(|byte| *byte == b'\n').map(line).collect()
    }
}

/// Lengths that are wrong by a little or by much: the frames are those of a plain reading, and what
/// is known of a skipped message is what was there.
pub(crate) mod length {
    use contexture_program::internals::wire::dialect::Dialect;
    use contexture_program::internals::wire::frame::Frame;

    use super::frame::{decode, payloads};

    /// What separates the messages in the data.
    const END: u8 = 0xfe;

    /// The first byte chooses the limit; then come messages, each with how wrong its length is.
    pub(crate) fn check(data: &[u8]) {
        let [limit, messages @ ..] = data else { return };
        let mut stream = b"000000".to_vec();
        for message in messages.split(|byte| *byte == END) {
            let [wrong, payload @ ..] = message else { continue };
            stream.extend(format!("{:06x}", said_length(payload.len(), *wrong)).bytes());
            stream.extend_from_slice(payload);
        }
        let limit = usize::from(*limit);
        let expected = payloads(&stream, limit);
        for size in [1, 5, 70, stream.len()] {
            assert_eq!(decode(&stream, limit, size), expected, "limit {limit}, pieces of {size}");
        }
        for frame in &expected {
            match frame {
                Frame::TooLong { ends, .. } => {
                    assert!(ends.first.len() <= 256 && ends.first.len() == ends.last.len());
                    Dialect::ALL.iter().for_each(|dialect| drop(dialect.id_of_ends(ends)));
                }
                Frame::Payload(payload) => drop(Dialect::of_payload(payload)),
                _ => {}
            }
        }
    }

    /// Mostly right.
    fn said_length(length: usize, wrong: u8) -> usize {
        match wrong {
            0..200 => length,
            200..220 => length + usize::from(wrong - 199),
            220..240 => length.saturating_sub(usize::from(wrong - 219)),
            240..250 => usize::from(wrong),
            _ => 0xff_ffff,
        }
    }
}

/// A template is refused at a place that it has, or becomes a text of bounded size.
pub(crate) mod template {
    use contexture_program::internals::template::{Fields, Template, TemplatePlace, render};

    const LONGEST: usize = 4 << 20;

    pub(crate) fn check(data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        let fields = Fields::from([("a", "{{ a }} ~ λ"), ("code", "fn x() {}\n"), ("empty", "")]);
        let template = Template::parse("t", TemplatePlace::BuiltIn, &text);
        match template.and_then(|template| render(&template, &fields)) {
            Ok(rendered) => assert!(rendered.len() <= LONGEST),
            Err(error) => {
                let lines = text.matches('\n').count() + 1;
                assert!((1..=lines).contains(&error.line) && error.column >= 1, "{error}");
            }
        }
    }
}

/// A template that is as deep as can be said in a few bytes ends nothing, also on a small stack.
pub(crate) mod nesting {
    /// What templates become deep with. Each is repeated as often as the byte behind it says.
    const PIECES: &[&str] = &[
        "{{ ",
        " }}",
        "{% if ",
        " %}",
        "{% if a %}",
        "{% endif %}",
        "{% elif a %}",
        "{% else %}",
        "{% for b in ",
        "{% for b in a %}",
        "{% endfor %}",
        "{% set b = ",
        "{% set b %}",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "{'a': ",
        "-",
        "not ",
        " and ",
        " or ",
        " if ",
        " else ",
        " in ",
        " is ",
        " == ",
        " - ",
        " // ",
        " % ",
        " ~ ",
        ".b",
        "[0]",
        "[1:]",
        "[::-1]",
        "|upper",
        "|lines",
        "|default(",
        "range(",
        "a",
        "b",
        "9",
        "'x'",
        ",",
        ":",
        "{% raw %}",
        "{% endraw %}",
        "{#",
        "#}",
        "{% macro m() %}",
        "{% endmacro %}",
        "{% include 'a' %}",
        "{% block b %}",
        "loop(a)",
        " recursive ",
        "\n",
        "λ",
        "99999999999999999999",
        "1e999",
        "|trim",
        "|split",
        "|first",
    ];
    /// Maximum length of the text, which is that of a template.
    const LONGEST: usize = 256 << 10;
    /// Half of the smallest stack on which the program reads templates.
    const STACK: usize = 1 << 20;

    /// Pairs of a piece and how often it stands there.
    pub(crate) fn check(data: &[u8]) {
        let mut text = String::new();
        for pair in data.chunks_exact(2) {
            let piece = PIECES[usize::from(pair[0]) % PIECES.len()];
            let times = match pair[1] {
                few @ 0..=150 => usize::from(few % 10) + 1,
                more @ 151..=230 => usize::from(more - 150) * 3,
                many => usize::from(many - 230) * 1_000,
            };
            if text.len() + piece.len() * times > LONGEST {
                break;
            }
            text.push_str(&piece.repeat(times));
        }
        let check = move || super::template::check(text.as_bytes());
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(check);
        thread.expect("there are threads").join().expect("no template panics");
    }
}
