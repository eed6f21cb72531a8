//! What must hold of any bytes a client may send; the fuzz targets and `tests/it/wire_fuzz.rs`
//! both run these.

/// Reading never panics, and what reads is printed on one line that reads as the same again.
pub(crate) mod sexp {
    use contexture::value::Value;
    use contexture::value::json::{from_json, to_json};
    use contexture::wire::dialect::Dialect;
    use contexture::wire::message::{Id, Incoming, Outgoing};
    use contexture::wire::sexp::{print, read};

    pub(crate) fn check(data: &[u8]) {
        for dialect in [Dialect::Native, Dialect::Json] {
            check_message(dialect, data);
        }
        if let Ok(value) = read(&String::from_utf8_lossy(data)) {
            check_printed(&value);
            check_json(&value);
        }
        if let Ok(value) = from_json(data) {
            check_json(&value);
        }
    }

    /// Any answer to any message is one line.
    fn check_message(dialect: Dialect, data: &[u8]) {
        let answer = match dialect.decode(data) {
            Incoming::Ignored => return,
            Incoming::Call(call) => Outgoing::Reply(call.id, Ok(call.params)),
            Incoming::Invalid(id, error) => Outgoing::Reply(id.or(Some(Id::Int(0))), Err(error)),
        };
        let mut line = Vec::new();
        dialect.encode(&answer, &mut line);
        assert_eq!(memchr_all(&line), [line.len() - 1], "{answer:?}");
        let text = String::from_utf8(line).expect("answers are UTF-8");
        match dialect {
            Dialect::Native => drop(read(&text).expect("answers are readable")),
            Dialect::Json => drop(from_json(text.as_bytes()).expect("answers are JSON")),
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
    use bytes::BytesMut;
    use contexture::wire::frame::{Frame, LineDecoder};
    use tokio_util::codec::Decoder;

    /// The first two bytes choose the limit and the size of the pieces.
    pub(crate) fn check(data: &[u8]) {
        let [limit, piece, stream @ ..] = data else { return };
        let limit = usize::from(*limit % 32);
        let expected = split(stream, limit);
        for size in [usize::from(*piece % 16) + 1, 1, stream.len().max(1)] {
            let frames = decode(stream, limit, size);
            assert_eq!(frames, expected, "limit {limit}, pieces of {size}");
        }
    }

    fn decode(stream: &[u8], limit: usize, size: usize) -> Vec<Frame> {
        let mut decoder = LineDecoder::new(limit);
        let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
        for piece in stream.chunks(size) {
            buffer.extend_from_slice(piece);
            while let Some(frame) = decoder.decode(&mut buffer).expect("lines never fail") {
                frames.push(frame);
            }
            assert!(buffer.len() <= limit + 1, "an overlong line is kept in memory");
        }
        while let Some(frame) = decoder.decode_eof(&mut buffer).expect("lines never fail") {
            frames.push(frame);
        }
        frames
    }

    fn split(stream: &[u8], limit: usize) -> Vec<Frame> {
        let line = |piece: &[u8]| {
            let line = match piece.strip_suffix(b"\n") {
                Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
                None => piece,
            };
            match line.len() {
                length if length > limit => Frame::TooLong { bytes: length as u64, limit },
                _ => Frame::Line(line.to_vec().into()),
            }
        };
        stream.split_inclusive(|byte| *byte == b'\n').map(line).collect()
    }
}
