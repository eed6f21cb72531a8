//! Numbers for tests that try many cases.

/// Generates the same random-looking numbers every time (`SplitMix64`).
pub struct Dice(pub u64);

impl Dice {
    /// Returns a number below `sides`, and 0 if that is 0.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides.max(1) as u64) as usize
    }

    /// Returns one of these texts.
    pub fn of<'a>(&mut self, these: &[&'a str]) -> &'a str {
        these[self.roll(these.len())]
    }
}
