//! Compares vectors by their direction.

/// Returns the cosine of the angle between two vectors; `None` if they have different numbers of
/// elements, or if one of them is zero or not finite. `square` is the [`dot`] product of `left`
/// with itself.
pub fn cosine(left: &[f32], square: f64, right: &[f32]) -> Option<f64> {
    if left.len() != right.len() {
        return None;
    }
    let lengths = (square * dot(right, right)).sqrt();
    (lengths.is_finite() && lengths > 0.0).then(|| dot(left, right) / lengths)
}

/// Returns the dot product, summed in eight lanes so that the compiler can vectorize it: a query is
/// compared with thousands of vectors while other requests wait.
pub fn dot(left: &[f32], right: &[f32]) -> f64 {
    let (left, left_rest) = left.as_chunks::<8>();
    let (right, right_rest) = right.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..8 {
            lanes[lane] += f64::from(left[lane]) * f64::from(right[lane]);
        }
    }
    let rest = left_rest.iter().zip(right_rest).map(|(l, r)| f64::from(*l) * f64::from(*r));
    lanes.iter().sum::<f64>() + rest.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_vectors_are_compared_in_full() {
        let mut left = vec![0.0; 19];
        let mut right = vec![0.0; 19];
        (left[18], right[18], right[3]) = (2.0, 3.0, 4.0);
        assert_eq!(dot(&left, &right), 6.0);
        assert_eq!(cosine(&left, dot(&left, &left), &right), Some(0.6));
    }
}
