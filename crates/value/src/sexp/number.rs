//! Reads and prints numbers as Emacs does. Tells numbers from names that only look like numbers.

use crate::Value;

/// Bits below a NaN's quiet bit. Emacs prints them as the number before `.0e+NaN`.
const NAN_PAYLOAD: u64 = (1 << 51) - 1;

/// Maximum number of digits of a number in a radix other than 10. Converting such a number takes
/// quadratic time, and `prin1` never writes one.
const MAX_RADIX_DIGITS: usize = 1024;

/// Parses `token` as a number, if it is one: `12`, `+5`, `5.`, `-.5`, `1e5`, `1.0e+INF`.
pub(super) fn parse(token: &str) -> Option<Value> {
    let unsigned = token.strip_prefix(['-', '+']).unwrap_or(token);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let negative = token.starts_with('-');
    let (whole, rest) = split_digits(unsigned);
    let (dot, rest) = match rest.strip_prefix('.') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (fraction, exponent) = if dot { split_digits(rest) } else { ("", rest) };
    if exponent.is_empty() && fraction.is_empty() {
        return if whole.is_empty() { None } else { Some(integer(whole, negative)) };
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    float(token, whole, exponent, negative).map(Value::Float)
}

/// Parses `token`, which may have a sign, as an integer in `radix`. Returns `None` if it is not
/// one, or has more than [`MAX_RADIX_DIGITS`] digits.
pub(super) fn parse_radix(token: &str, radix: u32) -> Option<Value> {
    let digits = token.strip_prefix(['-', '+']).unwrap_or(token);
    if digits.is_empty() || digits.len() > MAX_RADIX_DIGITS {
        return None;
    }
    // Decimal digits, least significant first.
    let mut decimal: Vec<u8> = vec![0];
    for digit in digits.chars() {
        let mut carry = digit.to_digit(radix)?;
        for place in &mut decimal {
            carry += u32::from(*place) * radix;
            *place = u8::try_from(carry % 10).unwrap_or(0);
            carry /= 10;
        }
        while carry > 0 {
            decimal.push(u8::try_from(carry % 10).unwrap_or(0));
            carry /= 10;
        }
    }
    let text: String = decimal.iter().rev().map(|place| char::from(b'0' + place)).collect();
    Some(integer(&text, token.starts_with('-')))
}

/// Appends `number` so that Emacs reads the same float, including a NaN's sign and payload.
pub(super) fn print_float(number: f64, out: &mut Vec<u8>) {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let text = if number.is_nan() {
        format!("{sign}{}.0e+NaN", number.to_bits() & NAN_PAYLOAD)
    } else if number.is_infinite() {
        format!("{sign}1.0e+INF")
    } else {
        format!("{number:?}")
    };
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn print_int(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn integer(digits: &str, negative: bool) -> Value {
    if let Ok(number) = digits.parse::<i64>() {
        return Value::Int(if negative { -number } else { number });
    }
    let digits = digits.trim_start_matches('0');
    let text = if negative { format!("-{digits}") } else { digits.to_owned() };
    text.parse().map_or_else(|_| Value::BigInt(text.into_boxed_str()), Value::Int)
}

fn float(token: &str, whole: &str, exponent: &str, negative: bool) -> Option<f64> {
    if exponent.is_empty() {
        return token.parse().ok();
    }
    let power = exponent.strip_prefix(['e', 'E'])?;
    match power {
        "+INF" if negative => Some(f64::NEG_INFINITY),
        "+INF" => Some(f64::INFINITY),
        "+NaN" => Some(nan(whole, negative)),
        _ => {
            let digits = power.strip_prefix(['-', '+']).unwrap_or(power);
            let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            if all_digits { token.parse().ok() } else { None }
        }
    }
}

fn nan(payload: &str, negative: bool) -> f64 {
    let payload = payload.parse().unwrap_or(0) & NAN_PAYLOAD;
    let quiet = 0x7FF8_0000_0000_0000 | payload;
    f64::from_bits(quiet | u64::from(negative) << 63)
}
